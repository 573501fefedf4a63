"""What a run prints for people: medians, the table of requirements, changes, warnings."""

import sys
from collections.abc import Mapping, Sequence
from datetime import timedelta

from against import Change, Spread
from measure import Run
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    Task,
    TextColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text
from summary import Results, Row
from work import Work

DISTURBED_SHARE = 0.2

# Beside a terminal, whole table cells matter more than the width of a page.
console = Console(width=None if sys.stdout.isatty() else 180)


class TimeLeft(TimeRemainingColumn):
    """Runs side by side have no pace that a bar could go by: their batch knows the time left."""

    def render(self, task: Task) -> Text:
        if "batch" not in task.fields:
            return super().render(task)
        left_s = task.fields["batch"].left_s()
        text = "-:--:--" if left_s is None else str(timedelta(seconds=int(left_s)))
        return Text(text, style="progress.remaining")


def progress_bars() -> Progress:
    columns = (
        TextColumn("{task.description:<36}"), BarColumn(), MofNCompleteColumn(), TimeLeft(),
    )  # fmt: skip
    return Progress(*columns, console=console, transient=True)


def figure(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def verdict(row: Row) -> str:
    if row.met is None:
        return "-"
    return "[green]met[/]" if row.met else "[red]missed[/]"


def ratio_text(row: Row) -> str:
    if row.ratio is None:
        return "-"
    spread = "" if row.low is None or row.high is None else f" [{row.low:.2f}, {row.high:.2f}]"
    return f"{row.ratio:.2f}{spread}"


def print_bars(rows: Sequence[Row]) -> None:
    table = Table(title="What it must reach (ratio above 1: we are ahead; 95 % interval)")
    for heading in ("work", "unit", "ours", "best peer", "", "ratio", "bar", ""):
        table.add_column(heading, justify="left" if heading in ("work", "unit", "") else "right")
    section = ""
    for row in rows:
        if row.section != section:
            table.add_section()
            section = row.section
        table.add_row(
            row.name, row.unit, figure(row.ours), figure(row.peer), row.peer_name,
            ratio_text(row).replace("[", r"\["), row.bar, verdict(row),
        )  # fmt: skip
    console.print(table)


def print_missed(verdicts: Mapping[str, bool | None], table: str = "") -> None:
    """A last line: what missed its bar, of those that were judged."""
    judged = [met for met in verdicts.values() if met is not None]
    missed = [name for name, met in verdicts.items() if met is False]
    text, style = f"met all of {len(judged)} bars", "green"
    if missed:
        text = f"missed {len(missed)} of {len(judged)} bars: {', '.join(missed)}"
        style = "yellow"
    if not judged:
        text, style = "no verdict: one round, or nothing to compare with", ""
    console.print(f"{table}: {text}" if table else text, style=style, markup=False)


def print_medians(results: Results, works: Sequence[Work]) -> None:
    table = Table(title="Medians")
    table.add_column("work")
    for name in results.allocators():
        table.add_column(name, justify="right")
    for work in works:
        for metric in work.metrics:
            cells = [
                figure(results.median(work.name, name, metric.key)) for name in results.allocators()
            ]
            table.add_row(f"{work.name} {metric.key}", *cells)
    console.print(table)


def spread_text(spread: Spread | None) -> str:
    if spread is None:
        return "-"
    return f"{figure(spread.middle)} \\[{figure(spread.low)}, {figure(spread.high)}]"


def print_changes(changes: Sequence[Change], earlier: str) -> None:
    table = Table(title=f"Our medians against {earlier} (95 % interval)")
    for heading in ("row", "unit", "then", "now", ""):
        table.add_column(heading, justify="right" if heading in ("then", "now") else "left")
    for change in changes:
        word = "[red]worse[/]" if change.worse else "held"
        said = f"not compared: {change.reason}" if change.reason else word
        table.add_row(
            change.name, change.unit, spread_text(change.then), spread_text(change.now), said
        )
    console.print(table)


def is_disturbed(run: Run) -> bool:
    """Others, the runner among them, took more than a fifth of a processor's time."""
    taken_s = run.values["others_s"] + run.values["steal_s"]
    return taken_s > 0.05 + DISTURBED_SHARE * run.values["wall_s"]


def warn_when_disturbed(runs: Sequence[Run], works: Sequence[Work]) -> None:
    """Programs of several threads need the whole machine: beside others they measure the others.
    Those that sleep do so beside each other, and need none of it."""
    asleep = {work.name for work in works if work.sleeps}
    awake = [run for run in runs if run.work not in asleep]
    disturbed = sum(is_disturbed(run) for run in awake)
    if disturbed > 0:
        console.print(
            f"{disturbed} of {len(awake)} runs shared the processors with others (column others_s):"
            " figures may mislead",
            style="yellow",
        )
