"""Somebody who watches: `tslab serve`, asked for its metrics once a second."""

import subprocess
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPException
from pathlib import Path

from measure import RunError

COMMAND = Path("cargo/release/tslab")
SERVING = "tslab: serving http://"
# The first question comes soon, so that a run of two seconds is asked twice.
FIRST_S, INTERVAL_S = 0.5, 1.0
TIMEOUT_S = 10.0
MOST_NAME = 15  # characters of a process's name that the kernel keeps


class Watcher(threading.Thread):
    """Asks until it is told to end; `scrapes` are the answers that had the program in them."""

    def __init__(self, url: str, program: str) -> None:
        super().__init__(daemon=True)
        self.url = url
        self.label = f'process="{program[:MOST_NAME]}"'.encode()
        self.scrapes = 0
        self.failure: Exception | None = None
        self._over = threading.Event()

    def run(self) -> None:
        wait_s = FIRST_S
        while not self._over.wait(wait_s) and self.failure is None:
            wait_s = INTERVAL_S
            try:
                with urllib.request.urlopen(self.url, timeout=TIMEOUT_S) as answer:
                    self.scrapes += self.label in answer.read()
            except (OSError, HTTPException) as error:
                self.failure = error

    def end(self) -> None:
        self._over.set()
        self.join()


@contextmanager
def serving(build: Path) -> Iterator[str]:
    """The address of a server of statistics."""
    command = [str(build / COMMAND), "serve", "--history", "none", "--listen", "127.0.0.1:0"]
    try:
        server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    except OSError as error:
        raise RunError(f"cannot watch: {error}; run: tools/tslab/build") from error
    try:
        assert server.stderr is not None
        line = server.stderr.readline()
        if not line.startswith(SERVING):
            raise RunError(f"tslab serve said: {line}")
        yield line.removeprefix(SERVING).rstrip("/\n")
    finally:
        server.terminate()
        server.communicate()


@contextmanager
def watched(build: Path, program: str) -> Iterator[Watcher]:
    """Meanwhile every process on our allocator is watched, the program's among them."""
    with serving(build) as address:
        watcher = Watcher(f"http://{address}/metrics", program)
        watcher.start()
        try:
            yield watcher
        finally:
            watcher.end()
    if watcher.failure is not None:
        raise RunError(f"tslab serve did not answer: {watcher.failure}")
    if watcher.scrapes == 0:
        raise RunError(f"nobody saw {program}: it ended too soon, or has no statistics")
