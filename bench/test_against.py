"""Earlier results beside new ones."""

import csv
from dataclasses import asdict
from pathlib import Path

import pytest
from against import AgainstError, Change, compare, load
from measure import Run
from summary import Results, summarise
from work import Bar, Metric, Work

RATE = Metric("rate", "M/s", Bar.SHOWN, higher_is_better=True)
TIME = Metric("ns", "ns", Bar.SHOWN)
WORK = Work("w", ("w", "1"), ("w",), (RATE, TIME), "s")


def results(rate: float, ns: float, rounds: int = 5) -> Results:
    return Results(
        Run(number, "w", name, "1", {"rate": rate + number / 100, "ns": ns + number / 100})
        for number in range(rounds)
        for name in ("tslab", "a")
    )


def save(folder: Path, known: Results, command: str = "w 1", runs: bool = True) -> Path:
    rows = summarise(known, [WORK])
    path = folder / "core_summary.csv"
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(asdict(rows[0])))
        writer.writeheader()
        writer.writerows(asdict(row) for row in rows)
    if runs:
        with (folder / "core_runs.csv").open("w", newline="") as file:
            out = csv.writer(file)
            out.writerow(["round", "work", "command", "allocator", "version", "rate", "ns"])
            for (work, name), series in known.series.items():
                for run in series:
                    out.writerow([run.number, work, command, name, "1", *run.values.values()])
    return path


def changes(folder: Path, now: Results) -> list[Change]:
    return compare(load(folder, "core"), now, [WORK], summarise(now, [WORK]))


def test_only_what_lies_wholly_on_the_bad_side_is_worse(tmp_path: Path) -> None:
    save(tmp_path, results(10, 10))
    assert [change.worse for change in changes(tmp_path, results(10, 10))] == [False, False]
    assert [change.worse for change in changes(tmp_path, results(9, 10))] == [True, False]
    assert [change.worse for change in changes(tmp_path, results(10, 11))] == [False, True]
    assert [change.worse for change in changes(tmp_path, results(11, 9))] == [False, False]
    assert [change.worse for change in changes(tmp_path, results(9.97, 10))] == [False, False]


def test_a_summary_alone_is_compared_by_its_paired_ratios(tmp_path: Path) -> None:
    def ahead(by: float) -> Results:
        return Results(
            Run(number, "w", name, "1", {"rate": rate, "ns": 1.0})
            for number in range(5)
            for name, rate in (("tslab", by), ("a", 1.0))
        )

    path = save(tmp_path, ahead(2.0), runs=False)
    worse = compare(load(path, "core"), ahead(1.5), [WORK], summarise(ahead(1.5), [WORK]))
    assert [change.worse for change in worse] == [True, False]


@pytest.mark.parametrize(
    ("command", "rounds", "reason"), [("w 1", 2, "fewer than 3 runs"), ("w 2", 5, "was w 2")]
)
def test_what_cannot_be_compared_says_why(
    tmp_path: Path, command: str, rounds: int, reason: str
) -> None:
    save(tmp_path, results(10, 10), command)
    found = changes(tmp_path, results(1, 100, rounds))
    assert all(reason in change.reason and not change.worse for change in found)


def test_a_row_that_was_not_there_is_not_compared(tmp_path: Path) -> None:
    save(tmp_path, results(10, 10))
    other = Work("new", ("new",), ("new",), (RATE,), "s")
    now = results(10, 10)
    (change,) = compare(load(tmp_path, "core"), now, [other], summarise(now, [other]))
    assert change.reason == "not there then"


@pytest.mark.parametrize("text", [None, "a,b\n1,2\n", "\x00"])
def test_what_is_no_summary_is_refused(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        (tmp_path / "core_summary.csv").write_text(text)
    with pytest.raises(AgainstError, match="no earlier summary"):
        load(tmp_path, "core")
