"""Watching, with a server of our own in place of the command."""

import sys
import threading
from pathlib import Path

import pytest
import scrape
from measure import RunError

SERVER = """#!{python}
import http.server, sys
assert sys.argv[1:4] == ["serve", "--history", "none"]  # of the bench's own processes
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = {body!r}
        self.send_response({status})
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *_):
        pass
server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
print(f"{said}{{server.server_address[1]}}/", file=sys.stderr, flush=True)
server.serve_forever()
"""


def command(folder: Path, body: bytes, status: int = 200, said: str = "") -> Path:
    path = folder / scrape.COMMAND
    path.parent.mkdir(parents=True)
    said = said or f"{scrape.SERVING}127.0.0.1:"
    path.write_text(SERVER.format(python=sys.executable, body=body, status=status, said=said))
    path.chmod(0o755)
    return folder


ASKS = 3


class Pauses(threading.Event):
    """What a watcher waits for between its questions: no time passes, and ASKS are enough."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds: list[float | None] = []

    def wait(self, timeout: float | None = None) -> bool:
        self.seconds.append(timeout)
        return len(self.seconds) > ASKS


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> Pauses:
    """Those of the next watcher."""
    pauses = Pauses()

    class Watcher(scrape.Watcher):
        def __init__(self, url: str, program: str) -> None:
            super().__init__(url, program)
            self._over = pauses

    monkeypatch.setattr(scrape, "Watcher", Watcher)
    return pauses


def watch(build: Path) -> int:
    with scrape.watched(build, "a_program_of_ours") as watcher:
        pass
    return watcher.scrapes


def test_it_is_asked_once_a_second(tmp_path: Path, pauses: Pauses) -> None:
    assert watch(command(tmp_path, b'tslab_x{pid="7",process="a_program_of_ou"} 1')) == ASKS
    assert pauses.seconds == [0.5, 1.0, 1.0, 1.0]


def test_nobody_asks_when_the_program_has_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scrape, "FIRST_S", 3600.0)
    with pytest.raises(RunError, match="ended too soon"):
        watch(command(tmp_path, b'tslab_x{pid="7",process="a_program_of_ou"} 1'))


def test_nobody_there_is_no_result(tmp_path: Path, pauses: Pauses) -> None:
    with pytest.raises(RunError, match="ended too soon"):
        watch(command(tmp_path, b'tslab_x{pid="7",process="another"} 1'))
    assert len(pauses.seconds) == ASKS + 1


def test_an_error_is_no_result(tmp_path: Path, pauses: Pauses) -> None:
    with pytest.raises(RunError, match="did not answer"):
        watch(command(tmp_path, b'pid="7"', status=500))
    assert len(pauses.seconds) == 2


def test_a_server_that_cannot_serve_is_no_result(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="said: no port"):
        watch(command(tmp_path, b"", said="no port "))


def test_without_the_command_it_is_named(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="tools/tslab/build"):
        watch(tmp_path)
