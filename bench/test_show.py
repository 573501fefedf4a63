"""The last line of a run."""

import pytest
import show
from summary import Row


@pytest.mark.parametrize(
    ("verdicts", "line"),
    [
        ((None,), "no verdict: one round, or nothing to compare with"),
        ((True, True), "met all of 2 bars"),
        ((True, False, None), "missed 1 of 2 bars: w rate 1"),
    ],
)
def test_the_last_line_names_what_missed(verdicts: tuple[bool | None, ...], line: str) -> None:
    rows = [
        Row("s", f"w rate {i}", "M/s", "> best", 1.0, "glibc", 2.0, met=met)
        for i, met in enumerate(verdicts)
    ]
    with show.console.capture() as said:
        show.print_missed(rows)
    assert said.get().strip() == line
