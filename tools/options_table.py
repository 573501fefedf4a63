"""Writes the table of run-time options into docs/options.md, between two marks.

The table says what src/base/options.def says. With --check nothing is written; the document has to
be up to date.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass

from marked import ROOT, Document

DECLARATIONS = ROOT / "src/base/options.def"
PARSER = ROOT / "src/base/options.c"
DOCUMENT = Document(
    ROOT / "docs/options.md",
    "<!-- options: written by tools/options_table.py from src/base/options.def -->\n",
    "<!-- options: end -->\n",
)

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
        if self.kind in ("SIZE", "LIMIT"):
            for suffix, unit in SUFFIXES:
                if value and value % unit == 0:
                    return f"{value // unit}{suffix}"
        return str(value)

    def values(self, words: dict[str, list[str]]) -> str:
        """What may be written."""
        if self.kind in words:
            return ", ".join(f"`{word}`" for word in words[self.kind])
        if self.kind == "LIMIT":
            number = f"`{self.lowest}` to `{self.text(self.highest - 1, words)}`"
            return f"`cgroup`, {number}"
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


def main(arguments: list[str]) -> int:
    options = parse_options(DECLARATIONS.read_text())
    words = parse_words(PARSER.read_text())
    return DOCUMENT.update(table(options, words), only_check="--check" in arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
