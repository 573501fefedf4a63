"""Mistakes of our own, on the C library's allocator and on a library that catches nothing."""

from pathlib import Path

import pytest
from misuse import (
    CAUGHT,
    LATE,
    MISSED,
    TIMEOUT,
    MisuseError,
    build_all,
    measure_folder,
    outcome,
)
from peers import Allocator

GLIBC = Allocator("glibc", None)
HEAD = "#include <stdio.h>\n#include <stdlib.h>\n#include <unistd.h>\n"
SAYS = 'puts("NOT_CAUGHT"); fflush(stdout);'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "programs"
    place.mkdir()
    return place


def add(folder: Path, name: str, body: str) -> None:
    (folder / name).write_text(f"{HEAD}int main(void) {{ {body} return 0; }}\n")


def outcome_of(folder: Path, body: str, limit_s: float = 10.0) -> str:
    add(folder, "one.c", body)
    (program,), _ = build_all(folder, folder)
    return outcome(program, GLIBC, limit_s)


def test_silence_is_caught(folder: Path) -> None:
    assert outcome_of(folder, "abort();") == CAUGHT


def test_who_says_so_got_away(folder: Path) -> None:
    assert outcome_of(folder, SAYS) == MISSED


def test_a_crash_afterwards_is_too_late(folder: Path) -> None:
    assert outcome_of(folder, f"{SAYS} abort();") == LATE


def test_who_does_not_end_is_counted_apart(folder: Path) -> None:
    assert outcome_of(folder, "sleep(60);", limit_s=0.2) == TIMEOUT


def test_each_size_is_a_program(folder: Path) -> None:
    add(folder, "sized.c", 'printf("%d\\n", ALLOCATION_SIZE);')
    add(folder, "plain.c", "")
    programs, refused = build_all(folder, folder)
    assert [path.name for path in programs] == [
        "plain", "sized_small", "sized_medium", "sized_large",
    ]  # fmt: skip
    assert not refused


def test_a_header_may_want_the_size(folder: Path) -> None:
    (folder / "common.h").write_text("#ifndef ALLOCATION_SIZE\n#error no size\n#endif\n")
    (folder / "plain.c").write_text('#include "common.h"\nint main(void) { return 0; }\n')
    programs, refused = build_all(folder, folder)
    assert len(programs) == 3
    assert not refused


def test_what_is_not_built_is_named(folder: Path) -> None:
    add(folder, "broken.c", "this is no C;")
    add(folder, "whole.cc", SAYS)
    programs, refused = build_all(folder, folder)
    assert [path.name for path in programs] == ["whole"]
    assert refused == ["broken"]


def test_a_folder_without_programs_is_refused(folder: Path) -> None:
    with pytest.raises(MisuseError, match="no C or C"):
        build_all(folder, folder)


def test_the_table_has_a_row_a_program(folder: Path, tmp_path: Path) -> None:
    add(folder, "caught.c", "abort();")
    add(folder, "missed.c", SAYS)
    table = tmp_path / "out" / "misuse.csv"
    counts, built, refused = measure_folder(folder, [GLIBC], table)
    assert (counts, built, refused) == ({"glibc": 1}, 2, [])
    assert table.read_text() == "program,glibc\ncaught,caught\nmissed,missed\n"


def test_the_allocator_is_preloaded(folder: Path) -> None:
    add(folder, "preloaded.c", f'if (getenv("LD_PRELOAD") == NULL) {{ {SAYS} }}')
    (program,), _ = build_all(folder, folder)
    assert outcome(program, GLIBC) == MISSED
    assert outcome(program, Allocator("other", Path("/nonexistent.so"))) == CAUGHT
