"""options_table.py on small declarations."""

from __future__ import annotations

import pytest

from tools import options_table

DECLARATIONS = """\
// OPTION(name, kind, default, lowest, highest, help)
OPTION(size, SIZE, 4294967296, 0, 1536, "How much")
OPTION(way, CHOICE_way, 1, 0, 1,
       "Which \\"way\\", "
       "in two parts")
OPTION(flag, BOOL, 0, 0, 1, "Whether")
OPTION(count, COUNT, 7, 1, 9, "How many")
"""
PARSER = """\
    words[][MOST] = {
    [BOOL] = {"false", "true"},
    [CHOICE_way] = {"left", "right"},
};
"""


def test_rows_show_values_as_users_write_them() -> None:
    options = options_table.parse_options(DECLARATIONS)
    rows = options_table.table(options, options_table.parse_words(PARSER)).splitlines()[2:]
    assert rows == [
        "| `size` | `4G` | `0` to `1536` | How much |",
        '| `way` | `right` | `left`, `right` | Which \\"way\\", in two parts |',
        "| `flag` | `false` | `false`, `true` | Whether |",
        "| `count` | `7` | `1` to `9` | How many |",
    ]


def test_a_declaration_that_is_not_understood_is_an_error() -> None:
    with pytest.raises(ValueError, match="0 of 1"):
        options_table.parse_options('OPTION(size, SIZE, 1 << 20, 0, 9, "How much")\n')


def test_the_table_replaces_what_stood_between_the_marks() -> None:
    document = f"# Options\n\n{options_table.BEGIN}old\n{options_table.END}\nMore.\n"
    once = options_table.with_table(document, "new\n")
    assert once == f"# Options\n\n{options_table.BEGIN}\nnew\n\n{options_table.END}\nMore.\n"
    assert options_table.with_table(once, "new\n") == once


def test_a_document_without_marks_is_an_error() -> None:
    with pytest.raises(ValueError, match="lacks the lines"):
        options_table.with_table("# Options\n", "new\n")
