"""Counts the cache lines that a warm request touches, and holds them against golden numbers.

    lines.py --preload LIBRARY --program PROGRAM LIST            fails when one is larger
    lines.py --preload LIBRARY --program PROGRAM LIST --update   writes the list anew

A line of the list names a request of lines.c and how many distinct lines of code, and of data, of
64 bytes it may touch, but for a few: what a thread finds in no cache after a pause. The least of
several requests counts, since every few requests tell what their thread did; by valgrind's
lackey. The objects are not written to.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

SKIPPED = 77
REQUESTS = 31
LINE_BYTES = 64
SLACK = 4  # where the stack begins depends on the lengths of paths

Lines = tuple[int, int]


def traced(program: Path, library: Path, request: str) -> list[Lines]:
    """Lines of code and of data of each request."""
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "trace"
        command = ["valgrind", "--tool=lackey", "--trace-mem=yes", f"--log-file={trace}"]
        command += [str(program), request, str(REQUESTS)]
        environment = {"PATH": os.environ["PATH"], "LD_PRELOAD": str(library), "LD_BIND_NOW": "1"}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise SystemExit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
        begins, ends = (int(address, 16) for address in done.stdout.split())
        with trace.open() as steps:
            return requests_in(steps, begins, ends)


def requests_in(steps: Iterable[str], begins: int, ends: int) -> list[Lines]:
    """What lies between each call of the one function and the next one of the other."""
    found: list[Lines] = []
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


def lines_of(program: Path, library: Path, request: str) -> Lines:
    found = traced(program, library, request)
    if len(found) != REQUESTS:
        raise SystemExit(f"{request}: {len(found)} requests were traced, not {REQUESTS}")
    return min(found)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--preload", type=Path, required=True)
    parser.add_argument("--program", type=Path, required=True)
    parser.add_argument("list", type=Path)
    parser.add_argument("--update", action="store_true")
    arguments = parser.parse_args()
    if shutil.which("valgrind") is None:
        print("skipped: not installed: valgrind")
        return SKIPPED

    golden = [line.split() for line in arguments.list.read_text().splitlines()]
    allowed = {request: (int(code), int(data)) for request, code, data in golden}
    found = {
        request: lines_of(arguments.program, arguments.preload, request) for request in allowed
    }
    if arguments.update:
        text = "".join(f"{request} {code} {data}\n" for request, (code, data) in found.items())
        arguments.list.write_text(text)
        return 0
    exceeds = False
    for request, (code, data) in found.items():
        most_code, most_data = allowed[request]
        print(f"{request}: {code} lines of code, {most_code} allowed; data {data}, {most_data}")
        exceeds |= code > most_code + SLACK or data > most_data + SLACK
    if exceeds:
        print(f"If this is meant: {' '.join(sys.argv)} --update")
    return int(exceeds)


if __name__ == "__main__":
    sys.exit(main())
