"""Writes the table of run-time options into docs/options.md, between two marks.

The table says what src/base/options.def says. With --check nothing is written; the document has to
be up to date.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DECLARATIONS = ROOT / "src/base/options.def"
PARSER = ROOT / "src/base/options.c"
DOCUMENT = ROOT / "docs/options.md"

BEGIN = "<!-- options: written by tools/options_table.py from src/base/options.def -->\n"
END = "<!-- options: end -->\n"

OPTION = re.compile(
    r'^OPTION\(\s*(\w+),\s*(\w+),\s*(\d+),\s*(\d+),\s*(\d+),\s*((?:"(?:[^"\\]|\\.)*"\s*)+)\)',
    re.MULTILINE,
)
STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')
WORDS = re.compile(r"\[(\w+)\]\s*=\s*\{([^{}]*)\}")
SUFFIXES = (("G", 1 << 30), ("M", 1 << 20), ("K", 1 << 10))


@dataclass(frozen=True)
class Option:
    name: str
    kind: str
    default: int
    lowest: int
    highest: int
    help: str

    def text(self, value: int, words: dict[str, list[str]]) -> str:
        """A value as a user writes it."""
        if self.kind in words:
            return words[self.kind][value]
        if self.kind == "SIZE":
            for suffix, unit in SUFFIXES:
                if value and value % unit == 0:
                    return f"{value // unit}{suffix}"
        return str(value)

    def values(self, words: dict[str, list[str]]) -> str:
        """What may be written."""
        if self.kind in words:
            return ", ".join(f"`{word}`" for word in words[self.kind])
        return f"`{self.text(self.lowest, words)}` to `{self.text(self.highest, words)}`"

    def row(self, words: dict[str, list[str]]) -> str:
        default = self.text(self.default, words)
        return f"| `{self.name}` | `{default}` | {self.values(words)} | {self.help} |"


def parse_options(declarations: str) -> list[Option]:
    options = [
        Option(name, kind, int(default), int(lowest), int(highest), "".join(STRING.findall(text)))
        for name, kind, default, lowest, highest, text in OPTION.findall(declarations)
    ]
    declared = len(re.findall(r"^OPTION\(", declarations, re.MULTILINE))
    if declared != len(options):
        raise ValueError(f"understood {len(options)} of {declared} declarations in {DECLARATIONS}")
    return options


def parse_words(parser: str) -> dict[str, list[str]]:
    """The words of each kind that is written in words."""
    return {kind: STRING.findall(words) for kind, words in WORDS.findall(parser)}


def table(options: list[Option], words: dict[str, list[str]]) -> str:
    header = ["| option | default | values | meaning |", "|---|---|---|---|"]
    return "\n".join([*header, *(option.row(words) for option in options)]) + "\n"


def with_table(document: str, content: str) -> str:
    """The document with the content between its marks."""
    before, begin, rest = document.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{DOCUMENT} lacks the lines {BEGIN.strip()} and {END.strip()}")
    return f"{before}{BEGIN}\n{content}\n{END}{after}"


def main(arguments: list[str]) -> int:
    options = parse_options(DECLARATIONS.read_text())
    words = parse_words(PARSER.read_text())
    document = DOCUMENT.read_text()
    wanted = with_table(document, table(options, words))
    if "--check" not in arguments:
        DOCUMENT.write_text(wanted)
    elif document != wanted:
        print(f"{DOCUMENT.relative_to(ROOT)} is out of date; run: make format")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
