"""Our medians beside those of an earlier result: a row fails when it surely became worse."""

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from peers import OURS
from record import RecordError, commands_of, load_runs
from summary import Results, Row, interval
from work import Metric, Work

# From fewer runs an interval says nothing.
FEWEST_RUNS = 3


class AgainstError(Exception):
    """An earlier result that nothing can be compared with."""


@dataclass(frozen=True)
class Spread:
    """A median and its 95 % interval."""

    middle: float
    low: float
    high: float


@dataclass(frozen=True)
class Change:
    """One row then and now; without a reason it was compared."""

    name: str
    unit: str
    then: Spread | None
    now: Spread | None
    worse: bool = False
    reason: str = ""


@dataclass(frozen=True)
class Earlier:
    """An earlier result: its rows, and its runs where they lie beside them."""

    rows: dict[str, dict[str, str]]
    results: Results | None
    commands: dict[str, str]


def summary_path(given: Path, table: str) -> Path:
    return given / f"{table}_summary.csv" if given.is_dir() else given


def load(given: Path, table: str) -> Earlier:
    path = summary_path(given, table)
    try:
        with path.open(newline="") as file:
            rows = {row["name"]: row for row in csv.DictReader(file)}
        if not rows:
            raise RecordError("it has no rows")
        runs_path = path.with_name(path.name.replace("_summary", "_runs"))
        if runs_path == path or not runs_path.exists():
            return Earlier(rows, None, {})
        return Earlier(rows, Results(load_runs(runs_path)), commands_of(runs_path))
    except (OSError, KeyError, UnicodeDecodeError, RecordError, csv.Error) as error:
        raise AgainstError(f"--against: {path} is no earlier summary: {error}") from error


def spread_of(results: Results, work: Work, metric: Metric) -> Spread | None:
    values = list(results.values(work.name, OURS, metric.key).values())
    middle = results.median(work.name, OURS, metric.key)
    if middle is None or len(values) < FEWEST_RUNS:
        return None
    return Spread(middle, *interval(values))


def is_worse(then: Spread, now: Spread, higher_is_better: bool) -> bool:
    return now.high < then.low if higher_is_better else now.low > then.high


def change_of_medians(earlier: Results, now: Results, work: Work, metric: Metric) -> Change:
    name = f"{work.name} {metric.key}"
    before, after = spread_of(earlier, work, metric), spread_of(now, work, metric)
    if before is None or after is None:
        when = "then" if before is None else "now"
        reason = f"fewer than {FEWEST_RUNS} runs {when}"
        return Change(name, metric.unit, before, after, reason=reason)
    worse = is_worse(before, after, metric.higher_is_better)
    return Change(name, metric.unit, before, after, worse)


def ratio_spread(ratio: object, low: object, high: object) -> Spread | None:
    """Of the paired ratios to the best peer, above one: we are ahead."""
    try:
        return Spread(float(str(ratio)), float(str(low)), float(str(high)))
    except ValueError:
        return None


def change_of_ratios(then: dict[str, str], row: Row, runs: int) -> Change:
    before = ratio_spread(then["ratio"], then["low"], then["high"])
    after = ratio_spread(row.ratio, row.low, row.high)
    unit = f"x {row.peer_name}"
    if before is None or after is None:
        return Change(row.name, unit, before, after, reason="no paired interval")
    if then["peer_name"] != row.peer_name:
        return Change(row.name, unit, before, after, reason=f"best peer was {then['peer_name']}")
    if runs < FEWEST_RUNS:
        return Change(row.name, unit, before, after, reason=f"fewer than {FEWEST_RUNS} runs now")
    return Change(row.name, unit, before, after, is_worse(before, after, higher_is_better=True))


def compare(
    earlier: Earlier, now: Results, works: Sequence[Work], rows: Sequence[Row]
) -> list[Change]:
    """By medians where the earlier runs are there, else by the ratios of the summary."""
    row_of_name = {row.name: row for row in rows}
    changes = []
    for work in works:
        for metric in work.metrics:
            name = f"{work.name} {metric.key}"
            command = work.text()
            if name not in earlier.rows:
                changes.append(Change(name, metric.unit, None, None, reason="not there then"))
            elif earlier.results is None:
                runs = len(now.values(work.name, OURS, metric.key))
                changes.append(change_of_ratios(earlier.rows[name], row_of_name[name], runs))
            elif earlier.commands.get(work.name, command) != command:
                reason = f"was {earlier.commands[work.name]}"
                changes.append(Change(name, metric.unit, None, None, reason=reason))
            else:
                changes.append(change_of_medians(earlier.results, now, work, metric))
    return changes
