"""reader_tables.py on small declarations, and on the real ones."""

from __future__ import annotations

from pathlib import Path

import pytest
import reader_tables
from rows import parse_format, parse_rows
from test_rows import FORMAT, ROWS

LAYOUT = parse_format(
    FORMAT
    + '#define TSLAB_STATS_MAGIC "any"\n'
    + "enum tslab_stats_unit { TSLAB_STATS_NONE, TSLAB_STATS_BYTES };\n"
)


def test_rust_has_what_is_declared() -> None:
    rows = ROWS.replace("TSL_SMALL_STATES", "TSL_THINGS_STATES")
    text = reader_tables.rust(parse_rows(rows), LAYOUT)
    for part in (
        r'pub const MAGIC: &[u8] = b"any\0";',
        "pub const ABI: u32 = 7;",
        "/// Of a unit.\npub const UNIT: u32 = 16;",
        "pub enum Kind {\n    Gauge,\n    Id,\n}",
        "pub enum ThingState {\n    Off,\n    On,\n}",
        "1 => Some(Self::On),",
        "pub const NAME: Range<usize> = 0..6;",
        "pub const LONG_ONE: usize = 8;",
        "pub const SIZE: usize = 24;",
        '    small {\n        /// One, (so).\n        WIDE "wide" One 8 Gauge Bytes;\n',
        "field: small::MANY, less: None }",
        "field: small::MANY, less: Some(small::WIDE) }",
    ):
        assert text.count(part) == 1, part


def test_typescript_has_what_the_page_shows() -> None:
    rows = ROWS.replace("small", "process").replace("SMALL_F", "PROCESS_F")
    text = reader_tables.typescript(parse_rows(rows.replace("SMALL", "EPOCHS")), LAYOUT)
    for part in (
        'export type Unit = "none" | "bytes";',
        'export type EpochState = "off" | "on";',
        '  wide: {\n    unit: "bytes",\n    meaning: "one, (so)",\n  },',
        '  full: {\n    of: "free",\n    unit: "objects",\n    meaning: "no room",\n  },',
    ):
        assert text.count(part) == 1, part


def test_the_modules_are_up_to_date() -> None:
    assert reader_tables.main(["--check"]) == 0


def test_a_module_that_is_not_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("RUST", "TYPESCRIPT"):
        monkeypatch.setattr(reader_tables, name, tmp_path / f"rows.{name}")
    monkeypatch.setattr("marked.ROOT", tmp_path)
    assert reader_tables.main([]) == 0
    assert reader_tables.main(["--check"]) == 0
    old = reader_tables.TYPESCRIPT.read_text()
    reader_tables.TYPESCRIPT.write_text(old.replace("cell_full", "cell_fill"))
    assert reader_tables.main(["--check"]) == 1
    assert capsys.readouterr().out == "rows.TYPESCRIPT is out of date; run: make format\n"
