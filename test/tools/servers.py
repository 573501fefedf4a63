"""Servers that tests look at while they run."""

from __future__ import annotations

import os
import pwd
import random
import re
import subprocess
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from clients import PATIENCE_SECONDS, asked_by, connected
from command import process

# What memcached counts of its own memory.
MEMCACHED_BYTES = ("total_malloced", "hash_bytes", "read_buf_bytes", "response_obj_bytes")
STATS = (b"stats", b"stats slabs")
FIGURE = re.compile(r"^STAT (\w+) (\d+)\r$", re.MULTILINE)


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


class Memcached:
    """A memcached that listens in a folder."""

    VALUE = b"x" * 1000
    BATCH = 100
    KEYS = 250_000

    def __init__(self, pid: int, path: str) -> None:
        self.pid = pid
        self.path = path
        self.connection = connected(path)

    def figures(self) -> dict[str, int]:
        """What it says of itself, as far as it is numbers."""
        said = "".join(self.connection.ask(b"%s\r\n" % what, b"END\r\n") for what in STATS)
        return {name: int(value) for name, value in FIGURE.findall(said)}

    def used_bytes(self) -> int:
        """What it says of its own memory."""
        figures = self.figures()
        return sum(figures[name] for name in MEMCACHED_BYTES)

    def fill(self, values: int) -> None:
        for first in range(0, values, self.BATCH):
            self.connection.ask(self.sets(range(first, first + self.BATCH)), b"END\r\n")

    def sets(self, keys: Iterable[int]) -> bytes:
        """Values without answers of their own, and a key that has none, which ends an answer."""
        head = b"set %d 0 0 %d noreply\r\n%s\r\n"
        stored = [head % (key, len(self.VALUE), self.VALUE) for key in keys]
        return b"".join(stored) + b"get none\r\n"

    @contextmanager
    def under_load(self, clients: int) -> Iterator[None]:
        """Clients that set and read, each in requests of many keys."""

        def some_keys() -> bytes:
            return self.sets(random.sample(range(self.KEYS), self.BATCH))

        with asked_by(clients, self.path, some_keys, b"END\r\n"):
            yield


@contextmanager
def memcached(preload: str, folder: str) -> Iterator[Memcached]:
    """A server without keys."""
    path = f"{folder}/socket"
    user = pwd.getpwuid(os.geteuid()).pw_name
    options = ("-s", path, "-m", "1024", "-u", user)
    with process("memcached", *options, preload=preload) as child:
        server = Memcached(child.pid, path)
        with server.connection.socket:
            yield server


class Store:
    """A server of ours, store.py or store.js, that listens in a folder."""

    def __init__(self, pid: int, path: str) -> None:
        self.pid = pid
        self.path = path
        self.connection = connected(path)

    def put(self, blocks: int) -> None:
        self.connection.ask(b"%d\n" % blocks, b"\n")

    def used_bytes(self) -> int:
        """What it says of its blocks."""
        return int(self.connection.ask(b"bytes\n", b"\n"))

    @contextmanager
    def under_load(self, clients: int) -> Iterator[None]:
        with asked_by(clients, self.path, lambda: b"100\n", b"\n"):
            yield


@contextmanager
def store(preload: str, folder: str, *interpreter: str) -> Iterator[Store]:
    """An empty one; `interpreter`: with the path of the program."""
    path = f"{folder}/socket"
    with process(*interpreter, path, preload=preload) as child:
        server = Store(child.pid, path)
        with server.connection.socket:
            yield server
