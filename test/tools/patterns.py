"""The patterns of the founding documents under the command: one leaks, and it alone is told of,
also of a process that nobody asked for samples.

patterns.py TSLAB PRELOAD SYNTHETIC_BENCH
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from command import Command, first_line

QUIET = ("burst", "steady", "hotspot", "kernel")
UNASKED_MARK = " unasked"
UNASKED = "leak" + UNASKED_MARK  # with default options
DURATION_S = 12
HOLD_S = 60
# Epochs that were closed a moment ago may be drained by requests that are about to end.
AFTER_S = 2
OBJECT_BYTES = 128


@contextmanager
def server(program: str, preload: str, pattern: str) -> Iterator[subprocess.Popen[str]]:
    """At the rates of its preset; stays a while at its end."""
    options = {"LD_PRELOAD": preload}
    if pattern != UNASKED:
        options |= {"TSLAB_SAMPLE_BYTES": "128K", "TSLAB_STATS_DELAY_MS": "0"}
    if pattern == "leak":
        options["TSLAB_PLACES"] = "own"  # each epoch counts its survivors, so that all add up
    preset = pattern.removesuffix(UNASKED_MARK)
    arguments = [f"--pattern={preset}", f"--duration_s={DURATION_S}", f"--hold_s={HOLD_S}"]
    with subprocess.Popen(
        [program, "--allocator=tslab", *arguments],
        env={**os.environ, **options},
        stdout=subprocess.PIPE,
        text=True,
    ) as child:
        try:
            yield child
        finally:
            child.kill()


def leaks(tslab: Command, child: subprocess.Popen[str], status: int | None) -> list[dict[str, Any]]:
    arguments = ("leaks", str(child.pid), "--after", str(AFTER_S))
    told: list[dict[str, Any]] = tslab.json(*arguments, status=status)["leaks"]
    return told


def check_quiet(tslab: Command, child: subprocess.Popen[str], pattern: str) -> None:
    """Where epochs share, the few objects in flight may be too few samples to know their ages."""
    for told in leaks(tslab, child, status=0):
        assert told["state"] == "shared", (pattern, told)
        assert told["outlived_objects"] is None, (pattern, told)


def sites(leak: dict[str, Any]) -> set[str]:
    """The functions that allocated what was sampled of it."""
    return {stack["calls"][0]["function"] for stack in leak["stacks"]}


def check_caught_early(tslab: Command, child: subprocess.Popen[str]) -> None:
    """While it runs, long before a minute is over. With default options the first look asks for
    the samples that a later one finds."""
    end = time.monotonic() + DURATION_S
    found: set[str] = set()
    time.sleep(AFTER_S + 2)
    while not found:
        assert time.monotonic() < end, "nobody was told who allocated what leaks"
        found = set().union(*map(sites, leaks(tslab, child, status=None)))
        time.sleep(0.2)
    assert found == {"request_make"}, found
    leaks(tslab, child, status=1)


def check_leak(tslab: Command, child: subprocess.Popen[str], result: str) -> None:
    """Label, class, allocation site and number are right."""
    (leak,) = leaks(tslab, child, status=1)
    leaked = int(re.findall(r" leaked=(\d+) ", result)[0])
    assert leak["label"] == "leak", leak
    assert leak["epochs"] > 1, leak
    assert leak["objects"] == leaked, (leaked, leak["objects"])
    assert leak["classes"] == [{"class_bytes": OBJECT_BYTES, "objects": leaked}], leak["classes"]
    assert sites(leak) == {"request_make"}, leak["stacks"]
    assert leak["stacks"][0]["calls"][0]["file"].endswith("server.c"), leak["stacks"][0]
    said = tslab.run("leaks", str(child.pid), "--after", str(AFTER_S), status=1)
    first, second = said.splitlines()[:2]
    assert re.match(r'\d+ epochs  "leak"  closed [\d.]+ s to \d+ s ago  \d+ objects  ', first), said
    assert re.match(rf"   128 B  {leaked}   ([ \d]+%  )?request_make +server\.c:\d+", second), said


def result_of(child: subprocess.Popen[str]) -> str:
    """What it says when its work is done."""
    line = first_line(child)
    assert line.startswith("result "), line
    return line


def main(tslab_path: str, preload: str, program: str) -> int:
    tslab = Command(tslab_path)
    with ExitStack() as servers:
        running = {
            pattern: servers.enter_context(server(program, preload, pattern))
            for pattern in (*QUIET, "leak", UNASKED)
        }
        check_caught_early(tslab, running[UNASKED])
        check_caught_early(tslab, running["leak"])
        for pattern in QUIET:
            check_quiet(tslab, running[pattern], pattern)
        results = {pattern: result_of(child) for pattern, child in running.items()}
        time.sleep(AFTER_S + 0.5)
        for pattern in QUIET:
            check_quiet(tslab, running[pattern], pattern)
        check_leak(tslab, running["leak"], results["leak"])
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
