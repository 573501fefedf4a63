"""The command `tslab` on a process that runs, and on what it leaves when it is killed.

live.py TSLAB PRELOAD LEAKER
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class Command:
    """The command under test."""

    def __init__(self, path: str) -> None:
        self.path = path

    def run(self, *arguments: str, status: int = 0) -> str:
        done = subprocess.run(
            [self.path, *arguments], capture_output=True, text=True, check=False, timeout=30
        )
        said = done.stdout + done.stderr
        assert done.returncode == status, f"{arguments}: status {done.returncode}\n{said}"
        return said

    def json(self, *arguments: str, status: int = 0) -> Any:
        return json.loads(self.run(*arguments, "--json", status=status))


@contextmanager
def process(program: str, preload: str) -> Iterator[subprocess.Popen[str]]:
    """A process that is ready, and is ended if it did not end."""
    child = subprocess.Popen(
        [program],
        env={**os.environ, "LD_PRELOAD": preload},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdin is not None
    assert child.stdout is not None
    try:
        assert child.stdout.readline() == "ready\n"
        yield child
    finally:
        child.kill()
        child.wait()
        child.stdin.close()
        child.stdout.close()


def check_leaks(tslab: Command, pid: str) -> None:
    said = tslab.run("leaks", pid, "--after", "0", status=1)
    for part in ('"GET /upload"', "357 objects", "128 B   340", "256 B    17"):
        assert part in said, said
    assert said.count("GET /upload") == 1, said
    assert tslab.run("leaks", pid, "--after", "3600") != said


def check_figures(tslab: Command, pid: str) -> None:
    assert "session" in tslab.run("epochs", pid)
    assert "leaker" in tslab.run("ps")
    assert tslab.run("stats", pid) != ""
    told = json.dumps(tslab.json("epochs", pid))
    assert "GET /upload" in told, told
    assert "session" in told, told


def main(tslab_path: str, preload: str, leaker: str) -> int:
    tslab = Command(tslab_path)
    with process(leaker, preload) as child:
        pid = str(child.pid)
        check_leaks(tslab, pid)
        check_figures(tslab, pid)
        child.kill()
        child.wait()
        assert pid in tslab.run("ps"), "what a killed process leaves is shown"
        tslab.run("gc", "--dry-run")
        assert pid in tslab.run("ps")
        tslab.run("gc")
        assert pid not in [word for line in tslab.run("ps").splitlines() for word in line.split()]
    said = tslab.run("stats", "999999999", status=2)
    assert "999999999" in said, said
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
