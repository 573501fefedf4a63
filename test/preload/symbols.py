"""Holds a library's dynamic symbols against a golden list, and looks at its dependencies.

    symbols.py LIBRARY LIST            fails when they differ
    symbols.py LIBRARY LIST --update   writes the list anew, for a change that is meant

A line of the list is a symbol's type as nm prints it, and its name with its version if it has one.
"""

from __future__ import annotations

import argparse
import difflib
import re
import subprocess
import sys
from pathlib import Path

# What a drop-in may bring into a process: nothing that the process would not load anyway.
ALLOWED_DEPENDENCIES = re.compile(r"(libc\.so\.6|ld-linux[\w-]*\.so\.\d|libc\.musl-[\w.]+)$")


def output_of(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def exported_symbols(library: Path) -> list[str]:
    """Type and name of each symbol, sorted; nm prints an address first."""
    text = output_of("nm", "-D", "--defined-only", "--with-symbol-versions", str(library))
    return sorted(" ".join(line.split()[-2:]) for line in text.splitlines())


def dependencies(library: Path) -> list[str]:
    return re.findall(r"\(NEEDED\).*\[(.+)\]", output_of("readelf", "-d", str(library)))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("library", type=Path)
    parser.add_argument("list", type=Path)
    parser.add_argument("--update", action="store_true")
    arguments = parser.parse_args()

    found = exported_symbols(arguments.library)
    if arguments.update:
        arguments.list.write_text("\n".join(found) + "\n")
        return 0

    golden = arguments.list.read_text().splitlines()
    difference = list(difflib.unified_diff(golden, found, "expected", "exported", lineterm="", n=0))
    unwanted = [
        name for name in dependencies(arguments.library) if not ALLOWED_DEPENDENCIES.match(name)
    ]
    for line in difference:
        print(line)
    if difference:
        print(f"If this is meant: {' '.join(sys.argv)} --update")
    for name in unwanted:
        print(f"{arguments.library.name} needs {name}, which not every program has")
    return 1 if difference or unwanted else 0


if __name__ == "__main__":
    sys.exit(main())
