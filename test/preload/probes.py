"""Holds a library's static probes against those that docs/probes.md lists.

probes.py LIBRARY DOCUMENT    fails when they differ
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

NOTE = re.compile(r"Provider: (\S+)\s+Name: (\S+)\s+Location:.*\s+Arguments: (.*)")
ROW = re.compile(r"^\| `(\w+):(\w+)` \| (.*?) \|", re.MULTILINE)


def probes_of(library: Path) -> set[tuple[str, str, int]]:
    """Provider, name and number of arguments of each."""
    command = ["readelf", "--notes", "--wide", str(library)]
    notes = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return {(provider, name, len(words.split())) for provider, name, words in NOTE.findall(notes)}


def probes_in(document: str) -> set[tuple[str, str, int]]:
    rows = ROW.findall(document)
    return {(provider, name, arguments.count("`") // 2) for provider, name, arguments in rows}


def main() -> int:
    library, document = Path(sys.argv[1]), Path(sys.argv[2])
    found, listed = probes_of(library), probes_in(document.read_text())
    for probe in sorted(found - listed):
        print(f"{document.name} does not list {probe}")
    for probe in sorted(listed - found):
        print(f"{library.name} does not have {probe}")
    return 0 if found == listed and found else 1


if __name__ == "__main__":
    sys.exit(main())
