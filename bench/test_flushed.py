"""Programs that let a burst go, with servers of our own in place of the real ones."""

import os
import socket
import sys
from pathlib import Path

import flushed
import pytest
from click.testing import CliRunner
from flushed import FlushedError
from peers import Allocator

GLIBC = Allocator("glibc", None)
SCALE = 100

SERVER = """#!{python}
import socketserver, sys
class Handler(socketserver.StreamRequestHandler):
    def handle(self):
        for line in self.rfile:
            words = line.split()
            {answer}
class Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
port = int(sys.argv[sys.argv.index("{option}") + 1])
Server(("127.0.0.1", port), Handler).serve_forever()
"""
REDIS = 'if words[0] in (b"SET", b"FLUSHALL"): self.wfile.write(b"+OK\\r\\n")'
MEMCACHED = """
            if words[0] == b"set":
                self.rfile.readline()
                self.wfile.write(b"STORED\\r\\n")
            if words[0] == b"get":
                self.wfile.write(b"VALUE k 0 1\\r\\nx\\r\\n" * (len(words) - 1) + b"END\\r\\n")
"""


@pytest.fixture(autouse=True)
def no_sleep(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flushed, "IDLE_SECONDS", 0.0)


def place(folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str) -> None:
    """A program of that name comes first in PATH."""
    path = folder / name
    path.write_text(text)
    path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")


def serve(
    folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, option: str, answer: str
) -> None:
    text = SERVER.format(python=sys.executable, option=option, answer=answer)
    place(folder, monkeypatch, name, text)


def test_the_burst_is_what_is_resident() -> None:
    large, small = flushed.python(GLIBC, 2), flushed.python(GLIBC, SCALE)
    assert large.full_kib - small.full_kib > 50 << 10


def test_a_server_is_filled_and_flushed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    serve(tmp_path, monkeypatch, "redis-server", "--port", REDIS)
    outcome = flushed.redis(GLIBC, SCALE)
    assert min(outcome.full_kib, outcome.later_kib) > 1 << 10


def test_connections_come_and_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    serve(tmp_path, monkeypatch, "memcached", "-p", MEMCACHED)
    outcome = flushed.memcached(GLIBC, SCALE)
    assert min(outcome.full_kib, outcome.later_kib) > 1 << 10


def test_a_server_that_ends_does_not_listen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place(tmp_path, monkeypatch, "redis-server", "#!/bin/sh\nexit 1\n")
    with pytest.raises(FlushedError, match="does not listen"):
        flushed.redis(GLIBC, SCALE)


def test_a_script_that_ends_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place(tmp_path, monkeypatch, "node", "#!/bin/sh\nexit 1\n")
    with pytest.raises(FlushedError, match="node has ended"):
        flushed.node(GLIBC, SCALE)


@pytest.mark.parametrize("name", ["redis", "memcached", "node"])
def test_a_missing_program_is_named(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(FlushedError, match=f"^{name}.* is missing; run: tools/bootstrap flushed"):
        flushed.PROGRAMS[name](GLIBC, SCALE)


def test_another_malloc_is_no_result() -> None:
    with pytest.raises(FlushedError, match="does not run on /nonexistent"):
        flushed.python(Allocator("other", Path("/nonexistent.so")), SCALE)


def test_each_value_is_answered() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(b"+OK\r\n" * 5)
        flushed.fill(ours, "set %d %d ", 5)
        sent = theirs.recv(1 << 16)
    assert sent.startswith(b"set 0 40 " + b"x" * 40 + b"\r\nset 1 146 ")
    assert sent.count(b"\r\n") == 5


def test_a_closed_connection_is_no_answer() -> None:
    ours, theirs = socket.socketpair()
    with ours:
        theirs.close()
        with pytest.raises(FlushedError, match="closed the connection"):
            flushed.receive(ours, 1)


def test_an_unknown_allocator_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FlushedError, match="no allocator hoard; there are: tslab"):
        flushed.chosen_of(tmp_path, ["hoard"])


def test_an_allocator_that_is_not_built_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FlushedError, match="no library of tslab"):
        flushed.chosen_of(tmp_path, ["tslab"])


def test_the_table_has_a_row_for_each_allocator() -> None:
    arguments = ["python", "--on", "glibc", "--rounds", "1", "--scale", str(SCALE)]
    done = CliRunner().invoke(flushed.main, arguments)
    assert done.exit_code == 0, done.output
    lines = done.output.splitlines()
    assert lines[0] == "| program | allocator | full, MiB | later, MiB |"
    assert lines[2].startswith("| python | glibc | ")
