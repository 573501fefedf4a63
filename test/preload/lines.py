"""Counts the cache lines that a warm request touches, and holds them against golden numbers.

    lines.py --preload LIBRARY --program PROGRAM LIST            fails when one is larger
    lines.py --preload LIBRARY --program PROGRAM LIST --update   writes the list anew

A line of the list names a request of lines.c and how many distinct lines of code, and of data, of
64 bytes it may touch, but for a few: what a thread finds in no cache after a pause. The least of
several requests counts, since every few requests tell what their thread did; by valgrind's
lackey. The objects are not written to.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

import golden

REQUESTS = 31
LINE_BYTES = 64
SLACK = 4  # where the stack begins depends on the lengths of paths


def traced(program: Path, library: Path, request: str) -> list[golden.Counts]:
    """Lines of code and of data of each request."""
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "trace"
        tool = ("--tool=lackey", "--trace-mem=yes", f"--log-file={trace}")
        printed = golden.run(tool, library, program, request, str(REQUESTS))
        begins, ends = (int(address, 16) for address in printed.split())
        with trace.open() as steps:
            return requests_in(steps, begins, ends)


def requests_in(steps: Iterable[str], begins: int, ends: int) -> list[golden.Counts]:
    """What lies between each call of the one function and the next one of the other."""
    found: list[golden.Counts] = []
    code: set[int] | None = None
    data: set[int] = set()
    for step in steps:
        if step[0] not in "I ":
            continue
        kind, address, size = step[:2], int(step[3:].split(",")[0], 16), int(step.split(",")[1])
        if kind == "I " and address == begins:
            code, data = set(), set()
        if code is None:
            continue
        if kind == "I " and address == ends:
            found.append((len(code), len(data)))
            code = None
            continue
        touched = code if kind == "I " else data
        touched.update(range(address // LINE_BYTES, (address + size - 1) // LINE_BYTES + 1))
    return found


def lines_of(program: Path, library: Path, request: str) -> golden.Counts:
    found = traced(program, library, request)
    if len(found) != REQUESTS:
        raise SystemExit(f"{request}: {len(found)} requests were traced, not {REQUESTS}")
    return min(found)


if __name__ == "__main__":
    sys.exit(golden.main(__doc__, lines_of, ("lines of code", "lines of data"), SLACK))
