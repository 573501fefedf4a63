"""The last line of a run."""

import pytest
import show


@pytest.mark.parametrize(
    ("verdicts", "line"),
    [
        ((None,), "no verdict: one round, or nothing to compare with"),
        ((True, True), "met all of 2 bars"),
        ((True, False, None), "missed 1 of 2 bars: w rate 1"),
    ],
)
def test_the_last_line_names_what_missed(verdicts: tuple[bool | None, ...], line: str) -> None:
    named = {f"w rate {i}": met for i, met in enumerate(verdicts)}
    for table, prefix in (("", ""), ("core", "core: ")):
        with show.console.capture() as said:
            show.print_missed(named, table)
        assert said.get() == f"{prefix}{line}\n"
