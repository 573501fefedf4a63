"""Measures our allocator beside its peers: `run.py core`, `run.py epochs`."""

import csv
import json
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import click
from environment import environment
from measure import Run, RunError, measure
from peers import OURS, Allocator, all_allocators
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from summary import Results, Row, summarise
from work import TABLES, Work

ROOT = Path(__file__).resolve().parent.parent
KERNEL_KEYS = (
    "wall_s", "user_s", "sys_s", "peak_kib", "minor_faults", "voluntary", "involuntary",
    "others_s", "steal_s",
)  # fmt: skip

DISTURBED_SHARE = 0.2
# What else a table's raw file keeps of its programs.
EXTRA_KEYS = {
    "core": (
        "floor_ns", "malloc_mean_ns", "free_mean_ns", "malloc_max_ns", "free_max_ns", "pair_ns",
    ),
    "epochs": (
        "near_ns", "all_ns", "fresh_ns", "epoch_kib", "early_bytes", "late_bytes", "before_bytes",
        "full_bytes", "after_bytes", "live_bytes",
    ),
}  # fmt: skip

# Beside a terminal, whole table cells matter more than the width of a page.
console = Console(width=None if sys.stdout.isatty() else 180)


def choose_allocators(build: Path, names: Sequence[str]) -> list[Allocator]:
    """Those asked for, or all; one that is missing ends the program with its name."""
    known = {allocator.name: allocator for allocator in all_allocators(build)}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise click.ClickException(f"no allocator {', '.join(unknown)}; known: {', '.join(known)}")
    chosen = [known[name] for name in names] or list(known.values())
    missing = [allocator for allocator in chosen if not allocator.exists()]
    for allocator in missing:
        console.print(f"missing: {allocator.name} ({allocator.library})", style="red")
    if missing:
        raise click.ClickException(
            "build it (targets `peers` and `all`), install it, or name the others by --allocator"
        )
    return chosen


def choose_works(table: str, names: Sequence[str], quick: bool) -> list[Work]:
    works = TABLES[table]
    unknown = [name for name in names if name not in {work.name for work in works}]
    if unknown:
        known = ", ".join(work.name for work in works)
        raise click.ClickException(f"no work {', '.join(unknown)}; known: {known}")
    chosen = [work for work in works if not names or work.name in names]
    return [work.hurried() for work in chosen] if quick else chosen


def plan(
    works: Sequence[Work], allocators: Sequence[Allocator], rounds: int
) -> Iterator[tuple[int, Work, Allocator]]:
    """Round by round, work by work, every allocator that can once in an order drawn anew."""
    chance = random.Random(1)
    for number in range(rounds):
        for work in works:
            able = [one for one in allocators if one.name == OURS or not work.ours_alone]
            if number < work.most_rounds:
                for allocator in chance.sample(able, len(able)):
                    yield number, work, allocator


def is_disturbed(run: Run) -> bool:
    """Others, the runner among them, took more than a fifth of a processor's time."""
    taken_s = run.values["others_s"] + run.values["steal_s"]
    return taken_s > 0.05 + DISTURBED_SHARE * run.values["wall_s"]


def warn_when_disturbed(runs: Sequence[Run]) -> None:
    """Programs of several threads need the whole machine: beside others they measure the others."""
    disturbed = sum(is_disturbed(run) for run in runs)
    if disturbed > 0:
        console.print(
            f"{disturbed} of {len(runs)} runs shared the processors with others (column others_s):"
            " figures may mislead",
            style="yellow",
        )


class RawFile:
    """One row a run, written as it comes, so that an interruption loses nothing."""

    def __init__(self, folder: Path, table: str, works: Sequence[Work]) -> None:
        keys = [metric.key for work in works for metric in work.metrics]
        self.keys = list(dict.fromkeys([*KERNEL_KEYS, *keys, *EXTRA_KEYS[table]]))
        self.file = (folder / f"{table}_runs.csv").open("w", newline="")
        self.writer = csv.writer(self.file, lineterminator="\n")
        self.writer.writerow(["round", "work", "command", "allocator", "version", *self.keys])

    def add(self, work: Work, run: Run) -> None:
        values = [run.values.get(key, "") for key in self.keys]
        command = " ".join(work.command_of(run.allocator == OURS))
        about = (run.number, run.work, command, run.allocator, run.version)
        self.writer.writerow([*about, *values])
        self.file.flush()

    def close(self) -> None:
        self.file.close()


def run_all(
    build: Path, steps: Sequence[tuple[int, Work, Allocator]], raw: RawFile
) -> tuple[list[Run], list[str]]:
    """All runs, and a line for each that failed."""
    runs: list[Run] = []
    failures: list[str] = []
    columns = (
        TextColumn("{task.description:<36}"), BarColumn(), MofNCompleteColumn(),
        TimeRemainingColumn(),
    )  # fmt: skip
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=len(steps))
        for number, work, allocator in steps:
            progress.update(task, description=f"{work.name} on {allocator.name}")
            try:
                runs.append(measure(build, number, work, allocator))
                raw.add(work, runs[-1])
            except RunError as error:
                failures.append(f"{work.name} on {allocator.name}: {error}")
            progress.advance(task)
    return runs, failures


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
    return f"{row.ratio:.2f}{spread}".replace("[", r"\[")


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
            ratio_text(row), row.bar, verdict(row),
        )  # fmt: skip
    console.print(table)


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


def write_summary(path: Path, rows: Sequence[Row]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(Row)], lineterminator="\n")
        writer.writeheader()
        writer.writerows(asdict(row) for row in rows)


@dataclass(frozen=True)
class Places:
    """Where the programs lie and where results go."""

    build: Path
    output: Path


@dataclass(frozen=True)
class Wish:
    """What the command line asks for."""

    rounds: int
    only: tuple[str, ...]
    allocator: tuple[str, ...]
    quick: bool


def write_all(places: Places, table: str, block: dict[str, object], rows: Sequence[Row]) -> None:
    write_summary(places.output / f"{table}_summary.csv", rows)
    text = json.dumps(block, indent=2) + "\n"
    (places.output / f"{table}_environment.json").write_text(text)


@click.group()
@click.option(
    "--build", default=ROOT / "build", type=click.Path(exists=True, path_type=Path), metavar="DIR"
)
@click.option(
    "--output", default=ROOT / "bench" / "results", type=click.Path(path_type=Path), metavar="DIR"
)
@click.pass_context
def main(context: click.Context, build: Path, output: Path) -> None:
    """Benchmarks of tslab."""
    context.obj = Places(build.resolve(), output)


def run_table(places: Places, table: str, wish: Wish) -> None:
    """Measures, writes and prints one table; status 1 when a bar is missed or a run failed."""
    works = choose_works(table, wish.only, wish.quick)
    allocators = choose_allocators(places.build, wish.allocator)
    places.output.mkdir(parents=True, exist_ok=True)
    raw = RawFile(places.output, table, works)
    runs, failures = run_all(places.build, list(plan(works, allocators, wish.rounds)), raw)
    raw.close()
    results = Results(runs)
    rows = summarise(results, works)
    write_all(places, table, environment(places.build, wish.rounds, results.versions()), rows)
    print_medians(results, works)
    print_bars(rows)
    warn_when_disturbed(runs)
    for failure in failures:
        console.print(failure, style="red", markup=False)
    sys.exit(1 if failures or any_missed(rows) else 0)


def wish_options(command: Callable[..., None]) -> Callable[..., None]:
    """The options that every table takes."""
    for option in (
        click.option("--quick", is_flag=True, help="Small runs, for a glance."),
        click.option("--allocator", multiple=True, metavar="NAME", help="Leave out other ones."),
        click.option("--only", multiple=True, metavar="WORK", help="Leave out every other work."),
        click.option("--rounds", default=7, show_default=True, type=click.IntRange(min=1)),
    ):
        command = option(command)
    return command


@main.command()
@wish_options
@click.pass_obj
def core(
    places: Places, rounds: int, only: tuple[str, ...], allocator: tuple[str, ...], quick: bool
) -> None:
    """What the core must reach; status 1 when a bar is missed or a run failed."""
    run_table(places, "core", Wish(rounds, only, allocator, quick))


@main.command()
@wish_options
@click.pass_obj
def epochs(
    places: Places, rounds: int, only: tuple[str, ...], allocator: tuple[str, ...], quick: bool
) -> None:
    """What epochs must reach; status 1 when a bar is missed or a run failed."""
    run_table(places, "epochs", Wish(rounds, only, allocator, quick))


def any_missed(rows: Sequence[Row]) -> bool:
    return any(row.met is False for row in rows)


if __name__ == "__main__":
    main()
