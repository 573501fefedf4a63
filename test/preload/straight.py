"""Counts a function's instructions from its entry to its first return, as they stand in a library.

    straight.py --objdump PROGRAM --library LIBRARY LIST            fails when one has more
    straight.py --objdump PROGRAM --library LIBRARY LIST --update   writes the list anew

A line of the list names an exported function and the instructions of its straight path, on which no
branch is taken; a call or a jump there fails. For processors where nothing counts at run time.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from pathlib import Path

ENDS = {"ret"}
LEAVES = {"b", "bl", "blr", "br"}


def start_of(library: Path, objdump: str, name: str) -> int:
    text = subprocess.run([objdump, "-T", library], capture_output=True, text=True, check=True)
    match = re.search(rf"^([0-9a-f]+) .*\.text\s.*\s{name}$", text.stdout, re.MULTILINE)
    if match is None:
        raise SystemExit(f"{library} exports no {name}")
    return int(match[1], 16)


def straight_path(library: Path, objdump: str, name: str) -> int:
    start = start_of(library, objdump, name)
    command = [objdump, "-d", "--no-show-raw-insn", f"--start-address={start}"]
    command += [f"--stop-address={start + 4096}", str(library)]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    path = re.findall(r"^\s+[0-9a-f]+:\t(\S+)", text, re.MULTILINE)
    for count, instruction in enumerate(path, start=1):
        if instruction in ENDS:
            return count
        if instruction in LEAVES:
            raise SystemExit(f"{name}: `{instruction}` is instruction {count} of the straight path")
    raise SystemExit(f"{name}: no return")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--objdump", required=True)
    parser.add_argument("--library", type=Path, required=True)
    parser.add_argument("list", type=Path)
    parser.add_argument("--update", action="store_true")
    arguments = parser.parse_args()

    golden = dict(line.split() for line in arguments.list.read_text().splitlines())
    found = {name: straight_path(arguments.library, arguments.objdump, name) for name in golden}
    if arguments.update:
        arguments.list.write_text("".join(f"{name} {count}\n" for name, count in found.items()))
        return 0
    for name, count in found.items():
        print(f"{name}: {count} instructions, {golden[name]} allowed")
    if any(count > int(golden[name]) for name, count in found.items()):
        print(f"If this is meant: {' '.join(sys.argv)} --update")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
