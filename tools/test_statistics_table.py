"""statistics_table.py on small declarations, and on the real ones."""

from __future__ import annotations

import pytest
import statistics_table

DECLARATIONS = """\
#define TSL_SMALL_FIELDS(T, ONE, EACH, TEXT)   \\
  ONE(T, uint64_t, wide, BYTES, GAUGE, "one")  \\
  EACH(T, uint32_t, many, OBJECTS, COUNTER,    \\
       "several")
#define TSL_NAMES_FIELDS(T, ONE, EACH, TEXT) \\
  TEXT(T, SOME, text, "a name")
"""


def test_fields_are_understood() -> None:
    tables = statistics_table.parse_tables(DECLARATIONS)
    assert [field.row() for field in tables["small"]] == [
        "| `wide` | gauge | bytes | one |",
        "| `many` | counter by class | objects | several |",
    ]
    assert [field.row() for field in tables["names"]] == ["| `text` | text |  | a name |"]


def test_what_is_not_understood_is_an_error() -> None:
    with pytest.raises(ValueError, match="understood 1 of 2"):
        statistics_table.parse_tables(DECLARATIONS.replace('"one")', "one)"))


def test_the_document_is_up_to_date() -> None:
    assert statistics_table.main(["--check"]) == 0
