"""Clients of servers that listen in a folder."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

PATIENCE_SECONDS = 30


class Connection:
    """A client."""

    def __init__(self, path: str) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(PATIENCE_SECONDS)
        self.socket.connect(path)

    def ask(self, request: bytes, end: bytes) -> str:
        """The answer, as far as the words that end it."""
        self.socket.sendall(request)
        answer = b""
        while not answer.endswith(end):
            more = self.socket.recv(1 << 16)
            assert more, "the server hung up"
            answer += more
        return answer.decode()


def connected(path: str) -> Connection:
    """Once the server listens."""
    ends = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            return Connection(path)
        except OSError:
            if time.monotonic() > ends:
                raise
            time.sleep(0.05)


@contextmanager
def asked_by(clients: int, path: str, request: Callable[[], bytes], end: bytes) -> Iterator[None]:
    """Clients that ask again and again, for as long as this lasts."""
    enough = threading.Event()

    def go_on() -> None:
        connection = Connection(path)
        with connection.socket:
            while not enough.is_set():
                connection.ask(request(), end)

    threads = [threading.Thread(target=go_on, daemon=True) for _ in range(clients)]
    for thread in threads:
        thread.start()
    try:
        yield
        assert all(thread.is_alive() for thread in threads), "the load ended"
    finally:
        enough.set()
        for thread in threads:
            thread.join(PATIENCE_SECONDS)
