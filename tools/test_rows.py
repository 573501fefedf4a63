"""rows.py on small declarations."""

from __future__ import annotations

import pytest
from rows import Field, Number, Part, SlowPath, State, parse_format, parse_rows

ROWS = """\
#define TSL_SMALL_FIELDS(T, ONE, EACH, LIST, TEXT)   \\
  ONE(T, uint64_t, wide, BYTES, GAUGE, "one, (so)")  \\
  EACH(T, uint32_t, many, OBJECTS, COUNTER,          \\
       "several "                                    \\
       "things")
#define TSL_OTHER_FIELDS(T, ONE, EACH, LIST, TEXT) \\
  LIST(T, SOME, uint64_t, list, NONE, ID, "a list") TEXT(T, SOME, text, "a name")
#define TSL_TABLES(TABLE) TABLE(other, 1, TSL_OTHER_FIELDS) TABLE(small, 8, TSL_SMALL_FIELDS)
#define TSL_SMALL_STATES(STATE) STATE(OFF, "off") STATE(ON, "on")
#define TSL_ROWS_NUMBERS(NUMBER) NUMBER(unit, 0x10, "of a unit")
#define TSL_SLOW_PATHS(COUNT, LESS)                \\
  COUNT(full, FREE, small, many, "no room")        \\
  LESS(empty, ALLOCATION, small, many, wide, "no block")
"""

FORMAT = """\
#define TSLAB_STATS_ABI 7u /* a format */
enum tslab_stats_kind {
  TSLAB_STATS_GAUGE, /* now */
  TSLAB_STATS_ID
};
struct tslab_stats_any {
  char name[6]; /* with a 0; no more */
  uint16_t short_one;
  uint64_t
      long_one;
  uint8_t byte;
};
"""


def test_tables_are_in_the_order_of_the_file() -> None:
    assert parse_rows(ROWS).tables == {
        "other": [
            Field("other", "list", "LIST", 8, "NONE", "ID", "a list"),
            Field("other", "text", "TEXT", 1, "NONE", "TEXT", "a name"),
        ],
        "small": [
            Field("small", "wide", "ONE", 8, "BYTES", "GAUGE", "one, (so)"),
            Field("small", "many", "EACH", 4, "OBJECTS", "COUNTER", "several things"),
        ],
    }


def test_states_numbers_and_slow_paths_are_understood() -> None:
    rows = parse_rows(ROWS)
    assert rows.states == {"small": [State("OFF", "off"), State("ON", "on")]}
    assert rows.numbers == [Number("unit", 16, "of a unit")]
    assert rows.slow_paths == [
        SlowPath("full", "FREE", "small", "many", None, "no room"),
        SlowPath("empty", "ALLOCATION", "small", "many", "wide", "no block"),
    ]


def test_what_is_not_understood_is_an_error() -> None:
    with pytest.raises(ValueError, match="understood 1 of 2 entries of TSL_SMALL_FIELDS"):
        parse_rows(ROWS.replace('"one, (so)")', "one, (so))"))
    with pytest.raises(ValueError, match="TSL_SLOW_PATHS is declared 0 times"):
        parse_rows(ROWS.replace("TSL_SLOW_PATHS", "TSL_PATHS"))
    with pytest.raises(ValueError, match=r"LESS\(empty, ...\) has 5 arguments"):
        parse_rows(ROWS.replace("many, wide,", "many,"))
    with pytest.raises(ValueError, match="slow path full: small has no field much"):
        parse_rows(ROWS.replace("small, many, ", "small, much, "))
    with pytest.raises(ValueError, match="not understood in struct tslab_stats_any: float byte"):
        parse_format(FORMAT.replace("uint8_t byte", "float byte"))


def test_structs_are_laid_out_as_in_c() -> None:
    layout = parse_format(FORMAT)
    assert layout.constants == {"ABI": "7u"}
    assert layout.enums == {"kind": ["GAUGE", "ID"]}
    (struct,) = layout.structs
    assert struct.parts == [
        Part("name", 0, 6, is_text=True),
        Part("short_one", 6, 2, is_text=False),
        Part("long_one", 8, 8, is_text=False),
        Part("byte", 16, 1, is_text=False),
    ]
    assert (struct.name, struct.size) == ("any", 24)
