"""options_table.py on small declarations."""

from __future__ import annotations

import options_table
import pytest

DECLARATIONS = """\
// OPTION(name, kind, default, lowest, highest, help)
OPTION(size, SIZE, 4294967296, 0, 1536, "How much")
OPTION(way, CHOICE_way, 1, 0, 1,
       "Which \\"way\\", "
       "in two parts")
OPTION(flag, BOOL, 0, 0, 1, "Whether")
OPTION(count, COUNT, 7, 1, 9, "How many")
OPTION(limit, LIMIT, 0, 0, 1025, "At most")
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
        "| `limit` | `0` | `cgroup`, `0` to `1K` | At most |",
    ]


def test_a_declaration_that_is_not_understood_is_an_error() -> None:
    with pytest.raises(ValueError, match="0 of 1"):
        options_table.parse_options('OPTION(size, SIZE, 1 << 20, 0, 9, "How much")\n')
