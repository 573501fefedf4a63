"""Writes the tables of docs/statistics.md, between two marks.

They say what src/epoch/rows.h says. With --check nothing is written; the document has to be up to
date.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass

from marked import ROOT, Document

DECLARATIONS = ROOT / "src/epoch/rows.h"
DOCUMENT = Document(
    ROOT / "docs/statistics.md",
    "<!-- fields: written by tools/statistics_table.py from src/epoch/rows.h -->\n",
    "<!-- fields: end -->\n",
)

SECTION = re.compile(r"#define TSL_(\w+)_FIELDS\([^)]*\)((?:.*\\\n)*.*\n)")
VALUE = re.compile(r'(ONE|EACH)\(T, (\w+), (\w+), (\w+), (\w+),[\s\\]*"([^"]*)"\)')
LIST = re.compile(r'LIST\(T, \w+, \w+, (\w+), (\w+), (\w+),[\s\\]*"([^"]*)"\)')
TEXT = re.compile(r'TEXT\(T, \w+, (\w+),[\s\\]*"([^"]*)"\)')


@dataclass(frozen=True)
class Field:
    name: str
    what: str
    unit: str
    meaning: str

    def row(self) -> str:
        return f"| `{self.name}` | {self.what} | {self.unit} | {self.meaning} |"


def value_field(form: str, name: str, unit: str, kind: str, meaning: str) -> Field:
    what = kind.lower() + {"ONE": "", "EACH": " by class", "LIST": "s"}[form]
    return Field(name, what, "" if unit == "NONE" else unit.lower(), meaning)


def parse_tables(declarations: str) -> dict[str, list[Field]]:
    """The fields of each table, in their order."""
    tables: dict[str, list[Field]] = {}
    for table, body in SECTION.findall(declarations):
        fields = [
            value_field(form, name, unit, kind, meaning)
            for form, _, name, unit, kind, meaning in VALUE.findall(body)
        ]
        fields += [value_field("LIST", *values) for values in LIST.findall(body)]
        fields += [Field(name, "text", "", meaning) for name, meaning in TEXT.findall(body)]
        declared = len(re.findall(r"\b(?:ONE|EACH|LIST|TEXT)\(T,", body))
        if declared != len(fields):
            raise ValueError(f"understood {len(fields)} of {declared} fields of {table}")
        tables[table.lower()] = fields
    return tables


def content(tables: dict[str, list[Field]]) -> str:
    lines = []
    for table, fields in tables.items():
        lines += [f"### {table}", "", "| field | kind | unit | meaning |", "|---|---|---|---|"]
        lines += [field.row() for field in fields]
        lines.append("")
    return "\n".join(lines)


def main(arguments: list[str]) -> int:
    tables = parse_tables(DECLARATIONS.read_text())
    return DOCUMENT.update(content(tables), only_check="--check" in arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
