"""Watching, with a server of our own in place of the command."""

import sys
import time
from pathlib import Path

import pytest
import scrape
from measure import RunError

SERVER = """#!{python}
import http.server, sys
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


def watch(build: Path, seconds: float) -> int:
    with scrape.watched(build, "a_program_of_ours") as watcher:
        time.sleep(seconds)
    return watcher.scrapes


def test_it_is_asked_once_a_second(tmp_path: Path) -> None:
    assert watch(command(tmp_path, b'tslab_x{pid="7",process="a_program_of_ou"} 1'), 2.1) == 2


def test_nobody_there_is_no_result(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="ended too soon"):
        watch(command(tmp_path, b'tslab_x{pid="7",process="another"} 1'), 0.8)


def test_an_error_is_no_result(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="did not answer"):
        watch(command(tmp_path, b'pid="7"', status=500), 0.8)


def test_a_server_that_cannot_serve_is_no_result(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="said: no port"):
        watch(command(tmp_path, b"", said="no port "), 0.1)


def test_without_the_command_it_is_named(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="tools/tslab/build"):
        watch(tmp_path, 0.1)
