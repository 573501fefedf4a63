"""rooms_table.py on three small folders."""

from __future__ import annotations

from pathlib import PurePosixPath

import rooms_table
from circles import c_graph


def test_a_cell_is_marked_where_a_file_of_the_row_includes_one_of_the_column() -> None:
    texts = {
        PurePosixPath("src/low/a.h"): ("#pragma once",),
        PurePosixPath("src/low/b.h"): ('#include "low/a.h"',),
        PurePosixPath("src/middle/c.h"): ("",),
        PurePosixPath("src/high/d.c"): ('#include "low/b.h"', '#include "middle/c.h"'),
    }
    assert rooms_table.table(c_graph(texts), ["low", "middle", "high"]).splitlines() == [
        "|   | `low` | `middle` |",
        "| --- | --- | --- |",
        "| `middle` |   |   |",
        "| `high` | x | x |",
    ]


def test_what_leads_upward_stands_above_the_diagonal() -> None:
    texts = {
        PurePosixPath("src/low/a.h"): ('#include "high/d.h"',),
        PurePosixPath("src/middle/c.h"): ('#include "high/d.h"',),
        PurePosixPath("src/high/d.h"): ("",),
    }
    rows = rooms_table.table(c_graph(texts), ["low", "high", "middle"]).splitlines()[2:]
    assert rows == ["| `high` |   |   |", "| `middle` |   | x |"]
