"""Servers that tests look at while they run."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from command import process

PATIENCE_SECONDS = 30


class Redis:
    """A redis-server that listens in a folder, and keeps nothing on the disk."""

    def __init__(self, pid: int, socket: str) -> None:
        self.pid = pid
        self.socket = socket

    def ask(self, *words: str) -> str:
        command = ["redis-cli", "-s", self.socket, *words]
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout

    def does(self, *words: str) -> None:
        said = self.ask(*words)
        assert said == "OK\n", (words, said)

    def used_bytes(self) -> int:
        """What it says of its own memory."""
        said = self.ask("INFO", "memory")
        used = re.search(r"^used_memory:(\d+)", said, re.MULTILINE)
        assert used, said
        return int(used[1])

    @contextmanager
    def under_load(self, clients: int) -> Iterator[None]:
        """Clients that set, read and push, for as long as this lasts."""
        words = f"-s {self.socket} -c {clients} -l -n 100000 -r 100000 -d 200 -q -t set,get,lpush"
        load = subprocess.Popen(
            ["redis-benchmark", *words.split()],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            yield
            assert load.poll() is None, "the load ended"
        finally:
            load.kill()
            load.wait()


@contextmanager
def redis(preload: str, folder: str, *environment: str) -> Iterator[Redis]:
    """A server without keys; `environment`: such as TSLAB_HELPER=never."""
    socket = f"{folder}/socket"
    options = f"--port 0 --unixsocket {socket} --enable-debug-command yes --dir {folder} --save"
    command = ("env", *environment, "redis-server", *options.split(), "")
    with process(*command, preload=preload) as child:
        server = Redis(child.pid, socket)
        end = time.monotonic() + PATIENCE_SECONDS
        while not Path(socket).exists() or server.ask("PING") != "PONG\n":
            assert time.monotonic() < end, "redis-server does not answer"
            time.sleep(0.05)
        yield server
