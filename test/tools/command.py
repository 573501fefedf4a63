"""The command `tslab` under test, and the processes that it looks at."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

SKIPPED = 77


class MissingError(Exception):
    """Why a test is skipped, in words that tools/skips.py knows."""


class Command:
    """The command under test."""

    def __init__(self, path: str) -> None:
        self.path = path

    def streams(
        self, *arguments: str, status: int | None = 0, **environment: str
    ) -> tuple[str, str]:
        """Status None: whether or not something is found."""
        done = subprocess.run(
            [self.path, *arguments],
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            check=False,
            timeout=30,
        )
        said = done.stdout + done.stderr
        expected = {0, 1} if status is None else {status}
        assert done.returncode in expected, f"{arguments}: status {done.returncode}\n{said}"
        return done.stdout, done.stderr

    def run(self, *arguments: str, status: int = 0, **environment: str) -> str:
        return "".join(self.streams(*arguments, status=status, **environment))

    def json(self, *arguments: str, status: int | None = 0) -> Any:
        return json.loads(self.streams(*arguments, "--json", status=status)[0])


@contextmanager
def process(
    *command: str, preload: str = "", **environment: str
) -> Iterator[subprocess.Popen[str]]:
    """A process that is ended if it did not end."""
    child = subprocess.Popen(
        command,
        env={**os.environ, "LD_PRELOAD": preload, **environment},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdin is not None
    assert child.stdout is not None
    try:
        yield child
    finally:
        child.kill()
        child.wait()
        child.stdin.close()
        child.stdout.close()


def stop(pid: int) -> None:
    """Stops a process, and waits until each of its threads has stopped."""
    os.kill(pid, signal.SIGSTOP)
    ends = time.monotonic() + 30
    states = ""
    while set(states) != {"T"}:
        assert time.monotonic() < ends, states
        stats = [thread.read_text() for thread in Path(f"/proc/{pid}/task").glob("*/stat")]
        states = "".join(stat.rpartition(")")[2].split()[0] for stat in stats)


def first_line(child: subprocess.Popen[str]) -> str:
    """What it says when it is ready."""
    assert child.stdout is not None
    return child.stdout.readline()


def end_input(child: subprocess.Popen[str]) -> None:
    """Lets it end by itself."""
    assert child.stdin is not None
    child.stdin.close()
    child.wait(timeout=30)


def needed(*names: str) -> None:
    """Programs without which the test is skipped."""
    missing = [name for name in names if shutil.which(name) is None]
    if missing:
        raise MissingError(f"not installed: {' '.join(missing)}")


def status_of(check: Callable[..., None], *arguments: Any) -> int:
    """The exit status of a test that may be skipped."""
    try:
        check(*arguments)
    except MissingError as error:
        print(f"skipped: {error}")
        return SKIPPED
    return 0
