"""A store of blocks: those that a request brings replace the oldest.

store.py SOCKET

A request is a line: how many blocks are new, and it is answered by the same line; or "bytes", and
the answer is how large all blocks are. Each client has a thread.
"""

from __future__ import annotations

import itertools
import socketserver
import sys

PLACES = 200_000
# With its head such an object fills its size class.
SIZES = (64, 160, 512, 1280)
HEAD_BYTES = sys.getsizeof(b"")

blocks = [b""] * PLACES
numbers = itertools.count()


def put(new: int) -> None:
    for number in itertools.islice(numbers, new):
        # The next block at a place has another size.
        size = SIZES[(number + number // PLACES) % len(SIZES)]
        blocks[number % PLACES] = bytes(size - HEAD_BYTES)


class Client(socketserver.StreamRequestHandler):
    """One that asks until it hangs up."""

    def handle(self) -> None:
        for line in self.rfile:
            if line == b"bytes\n":
                self.wfile.write(b"%d\n" % sum(map(sys.getsizeof, filter(None, blocks))))
            else:
                put(int(line))
                self.wfile.write(line)


class Server(socketserver.ThreadingUnixStreamServer):
    """It ends with its clients."""

    daemon_threads = True
    request_queue_size = 100


if __name__ == "__main__":
    Server(sys.argv[1], Client).serve_forever()
