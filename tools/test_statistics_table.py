"""statistics_table.py on small declarations, and on the real ones."""

from __future__ import annotations

import re

import statistics_table
from rows import declared_rows, parse_rows
from test_rows import ROWS


def test_the_tables_have_a_row_for_each_declaration() -> None:
    rows = ROWS.replace("many, OBJECTS", "state, OBJECTS").replace("small, many", "small, state")
    content = statistics_table.content(parse_rows(rows)).splitlines()
    for row in (
        "### other",
        "| `list` | ids |  | a list |",
        "| `text` | text |  | a name |",
        "| `wide` | gauge | bytes | one, (so) |",
        "| `state` | counter by class | objects | several things: 0 off, 1 on |",
        "| `unit` | 16 | of a unit |",
        "| `full` | free | `state` | no room |",
        "| `empty` | allocation | `state` - `wide` | no block |",
    ):
        assert content.count(row) == 1, row


def test_the_document_is_up_to_date() -> None:
    assert statistics_table.main(["--check"]) == 0


def test_the_sums_are_of_fields_that_there_are() -> None:
    _, _, sums = statistics_table.DOCUMENT.path.read_text().partition("\n## Sums\n")
    code = re.findall(r"`([^`]+)`", sums.partition("\n## ")[0])
    tables = declared_rows().tables
    known = {field.name for fields in tables.values() for field in fields} | set(tables)
    assert {name for part in code for name in re.findall(r"[a-z_]+", part)} <= known
