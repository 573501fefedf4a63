"""Counts the instructions of malloc and free under callgrind and holds them against golden numbers.

    instructions.py --preload LIBRARY --program PROGRAM LIST            fails when one is larger
    instructions.py --preload LIBRARY --program PROGRAM LIST --update   writes the list anew

A line of the list names a pair of instructions.c and how many instructions it may take, warm. Two
runs of different length cancel what happens once; the loop's own instructions are not counted.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

SKIPPED = 77
SHORT, LONG = 2000, 12000


def callgrind(program: Path, library: Path, pair: str, count: int) -> tuple[int, int]:
    """All instructions inside the measured loop, and those of its own code."""
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "callgrind"
        command = [
            "valgrind",
            "--tool=callgrind",
            "--quiet",
            f"--toggle-collect=measured_{pair}",
            "--compress-strings=no",
            f"--callgrind-out-file={output}",
            str(program),
            pair,
            str(count),
        ]
        environment = {"PATH": os.environ["PATH"], "LD_PRELOAD": str(library), "LD_BIND_NOW": "1"}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise SystemExit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
        return total_instructions(output.read_text()), own_instructions(output.read_text(), pair)


def total_instructions(profile: str) -> int:
    match = re.search(r"^(?:totals|summary): (\d+)", profile, re.MULTILINE)
    if match is None:
        raise SystemExit("callgrind wrote no total")
    return int(match[1])


def own_instructions(profile: str, pair: str) -> int:
    """Self cost of the measured function: its cost lines, without those that follow calls=."""
    own, inside, is_call = 0, False, False
    for line in profile.splitlines():
        if line.startswith("fn="):
            inside = line == f"fn=measured_{pair}"
        elif line.startswith("calls="):
            is_call = True
        elif re.match(r"[+\-*\d]", line):
            if inside and not is_call:
                own += int(line.split()[1])
            is_call = False
    return own


def instructions_of(program: Path, library: Path, pair: str) -> int:
    """Instructions of one pair, rounded up."""
    short_all, short_own = callgrind(program, library, pair, SHORT)
    long_all, long_own = callgrind(program, library, pair, LONG)
    return -(-((long_all - long_own) - (short_all - short_own)) // (LONG - SHORT))


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

    golden = dict(line.split() for line in arguments.list.read_text().splitlines())
    found = {pair: instructions_of(arguments.program, arguments.preload, pair) for pair in golden}
    if arguments.update:
        arguments.list.write_text("".join(f"{pair} {count}\n" for pair, count in found.items()))
        return 0
    for pair, count in found.items():
        print(f"{pair}: {count} instructions, {golden[pair]} allowed")
    if any(count > int(golden[pair]) for pair, count in found.items()):
        print(f"If this is meant: {' '.join(sys.argv)} --update")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
