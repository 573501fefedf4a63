"""Counts the instructions of malloc and free under callgrind and holds them against golden numbers.

    instructions.py --preload LIBRARY --program PROGRAM LIST            fails when one is larger
    instructions.py --preload LIBRARY --program PROGRAM LIST --update   writes the list anew

A line of the list names a pair of instructions.c and how many instructions it may take, warm. Two
runs of different length cancel what happens once; the loop's own instructions are not counted.
"""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path

import golden

SHORT, LONG = 2000, 12000


def callgrind(program: Path, library: Path, pair: str, count: int) -> tuple[int, int]:
    """All instructions inside the measured loop, and those of its own code."""
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "callgrind"
        tool = (
            "--tool=callgrind",
            "--quiet",
            f"--toggle-collect=measured_{pair}",
            "--compress-strings=no",
            f"--callgrind-out-file={output}",
        )
        golden.run(tool, library, program, pair, str(count))
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


def instructions_of(program: Path, library: Path, pair: str) -> golden.Counts:
    """Instructions of one pair, rounded up."""
    short_all, short_own = callgrind(program, library, pair, SHORT)
    long_all, long_own = callgrind(program, library, pair, LONG)
    return (-(-((long_all - long_own) - (short_all - short_own)) // (LONG - SHORT)),)


if __name__ == "__main__":
    sys.exit(golden.main(__doc__, instructions_of, ("instructions",)))
