"""Holds what valgrind counts of a program, with the library under it, against golden numbers.

A line of the list names what the program does, and how much of each unit it may take.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

SKIPPED = 77

Counts = tuple[int, ...]
Counter = Callable[[Path, Path, str], Counts]  # of a program, with a library, in what it does


def run(tool: Sequence[str], library: Path, program: Path, *arguments: str) -> str:
    """What the program prints under a tool of valgrind."""
    command = ["valgrind", *tool, str(program), *arguments]
    environment = {"PATH": os.environ["PATH"], "LD_PRELOAD": str(library), "LD_BIND_NOW": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    return done.stdout


def read(path: Path) -> dict[str, Counts]:
    lines = [line.split() for line in path.read_text().splitlines()]
    return {name: tuple(map(int, counts)) for name, *counts in lines}


def text_of(counts: dict[str, Counts]) -> str:
    return "".join(f"{name} {' '.join(map(str, each))}\n" for name, each in counts.items())


def main(description: str | None, counter: Counter, units: Sequence[str], slack: int = 0) -> int:
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--preload", type=Path, required=True)
    parser.add_argument("--program", type=Path, required=True)
    parser.add_argument("list", type=Path)
    parser.add_argument("--update", action="store_true")
    arguments = parser.parse_args()
    if shutil.which("valgrind") is None:
        print("skipped: not installed: valgrind")
        return SKIPPED

    golden = read(arguments.list)
    found = {name: counter(arguments.program, arguments.preload, name) for name in golden}
    if arguments.update:
        arguments.list.write_text(text_of(found))
        return 0
    exceeds = False
    for name, counts in found.items():
        for count, most, unit in zip(counts, golden[name], units, strict=True):
            print(f"{name}: {count} {unit}, {most} allowed")
            exceeds |= count > most + slack
    if exceeds:
        print(f"If this is meant: {' '.join(sys.argv)} --update")
    return int(exceeds)
