"""Measures our allocator beside its peers: `run.py core`, `epochs`, `suite`, `servers`,
`external DIR`; and beside itself: `observed`. Counts the mistakes that they catch: `misuse DIR`."""

import csv
import json
import random
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any

import against
import click
import external
import misuse
import written
from asleep import Batch, how_many_at_once
from environment import commit_of, environment
from measure import Run, RunError, measure
from peers import OURS, TWINS, Allocator, all_allocators, ours_secure
from record import Plan, Record, RecordError
from rich.progress import Progress, TaskID
from scrape import watched
from show import (
    console,
    print_bars,
    print_changes,
    print_medians,
    print_missed,
    progress_bars,
    warn_when_disturbed,
)
from summary import Results, Row, summarise
from tables import TABLES, allocators_of, keys_of
from work import Work

ROOT = Path(__file__).resolve().parent.parent
INTERRUPTED = 130

Step = tuple[int, Work, Allocator]


@dataclass(frozen=True)
class Wish:
    """What the command line asks for."""

    build: Path
    output: Path
    rounds: int
    only: tuple[str, ...]
    allocator: tuple[str, ...]
    quick: bool
    resume: bool
    strict: bool
    against: Path | None


def wish_of(output: Path | None, **options: Any) -> Wish:
    """Only whole tables go among the results, unless the command line names a folder."""
    part = options["quick"] or options["only"] or options["allocator"]
    usual = options["build"] / "bench-part" if part else ROOT / "bench" / "results"
    return Wish(output=output or usual, **options)


def choose_allocators(
    able: Sequence[Allocator], names: Sequence[str], quick: bool
) -> list[Allocator]:
    """Those asked for, or all; one that is missing ends the program with its name."""
    known = {allocator.name: allocator for allocator in able}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise click.UsageError(f"no allocator {', '.join(unknown)}; known: {', '.join(known)}")
    usual = [name for name in known if not (quick and name in TWINS)]
    chosen = [known[name] for name in names or usual]
    missing = [allocator for allocator in chosen if not allocator.exists()]
    for allocator in missing:
        console.print(f"missing: {allocator.name} ({allocator.library})", style="red")
    if missing:
        raise click.ClickException(
            "build it (targets `peers` and `all`), install it, or name the others by --allocator"
        )
    return chosen


def choose_works(works: Sequence[Work], names: Sequence[str], quick: bool) -> list[Work]:
    unknown = [name for name in names if name not in {work.name for work in works}]
    if unknown:
        known = ", ".join(work.name for work in works)
        raise click.UsageError(f"no work {', '.join(unknown)}; known: {known}")
    chosen = [work for work in works if not names or work.name in names]
    return [work.hurried() for work in chosen] if quick else chosen


def plan(works: Sequence[Work], allocators: Sequence[Allocator], rounds: int) -> Iterator[Step]:
    """Round by round, work by work, every allocator that can once in an order drawn anew."""
    chance = random.Random(1)
    for number in range(rounds):
        for work in works:
            able = [one for one in allocators if one.name == OURS or not work.ours_alone]
            if number < work.most_rounds:
                for allocator in chance.sample(able, len(able)):
                    yield number, work, allocator


def remaining(steps: Sequence[Step], runs: Sequence[Run]) -> list[Step]:
    done = {(run.number, run.work, run.allocator) for run in runs}
    return [step for step in steps if (step[0], step[1].name, step[2].name) not in done]


def measure_watched(build: Path, number: int, work: Work, allocator: Allocator) -> Run:
    with watched(build, work.command[0]) as watcher:
        run = measure(build, number, work, allocator)
    run.values["scrapes"] = watcher.scrapes
    return run


def run_step(build: Path, base: Path, step: Step) -> Run:
    number, work, allocator = step
    if allocator.watched:
        return measure_watched(build, number, work, allocator)
    if not work.writes:
        return measure(build, number, work, allocator)
    folder = written.folder_of_run(base, number, work.name, allocator.name)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    run = measure(build, number, work, allocator, folder)
    written.check(folder, work)
    return run


class Tally:
    """What came of the steps so far: runs, each in the record too, and a line for each failure."""

    def __init__(self, record: Record, bars: Progress) -> None:
        self.record, self.bars = record, bars
        self.runs: list[Run] = []
        self.failures: list[str] = []

    def settle(self, bar: TaskID, step: Step, result: Callable[[], Run]) -> None:
        _, work, allocator = step
        try:
            run = result()
            self.record.add(work, run)
            self.runs.append(run)
        except RunError as error:
            self.failures.append(f"{work.name} on {allocator.name}: {error}")
        self.bars.advance(bar)


def run_all(
    build: Path, steps: Sequence[Step], record: Record, base: Path
) -> tuple[list[Run], list[str]]:
    """All runs, and a line for each that failed. Those that sleep come first, side by side."""
    run_one = partial(run_step, build, base)
    asleep = [step for step in steps if step[1].sleeps]
    awake = [step for step in steps if not step[1].sleeps]
    batch = Batch(asleep, run_one, how_many_at_once(work for _, work, _ in asleep))
    with progress_bars() as bars:
        tally = Tally(record, bars)
        side_by_side = bars.add_task(
            "asleep, side by side", total=len(asleep), visible=bool(asleep), batch=batch
        )
        in_turn = bars.add_task(
            "then one after the other", total=len(awake), visible=bool(awake), start=False
        )
        batch.run(partial(tally.settle, side_by_side))
        bars.start_task(in_turn)
        for step in awake:
            _, work, allocator = step
            bars.update(in_turn, description=f"{work.name} on {allocator.name}")
            tally.settle(in_turn, step, partial(run_one, step))
    return tally.runs, tally.failures


def write_summary(path: Path, rows: Sequence[Row]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(Row)], lineterminator="\n")
        writer.writeheader()
        writer.writerows(asdict(row) for row in rows)


def write_environment(wish: Wish, table: str, commit: str, versions: dict[str, str]) -> None:
    text = json.dumps(environment(wish.build, wish.rounds, commit, versions), indent=2) + "\n"
    (wish.output / f"{table}_environment.json").write_text(text)


def begin(wish: Wish, record: Record, planned: Plan, base: Path, works: list[Work]) -> list[Run]:
    """The runs that there are already: none, unless an interrupted run goes on."""
    if wish.resume:
        runs = record.resume(planned)
        lost = written.without_files(base, works, runs)
        if lost:
            raise RecordError(
                f"cannot resume: {len(lost)} runs' files are gone from {base}; leave out --resume"
            )
        console.print(f"going on behind {len(runs)} runs", style="yellow")
        return runs
    for path in record.begin(planned):
        console.print(f"kept an incomplete earlier file: {path}", style="yellow")
    shutil.rmtree(base, ignore_errors=True)
    return []


@contextmanager
def ends_clearly(record: Record) -> Iterator[None]:
    """An interruption keeps the rows so far and says how to go on."""
    try:
        yield
    except RecordError as error:
        raise click.ClickException(str(error)) from error
    except KeyboardInterrupt:
        record.end(complete=False)
        console.print(f"interrupted; the rows so far are in {record.path}, --resume goes on")
        sys.exit(INTERRUPTED)
    except OSError as error:
        record.end(complete=False)
        raise click.ClickException(
            f"cannot write results: {error}; the rows so far stay in {record.path},"
            " --resume goes on when this is mended"
        ) from error


def changed_meanwhile(before: Plan, after: Plan) -> list[str]:
    """Rows of two builds are no rows of one table."""
    changed = before.differences(after)
    return [f"changed while it was measured: {'; '.join(changed)}"] if changed else []


def measure_table(
    wish: Wish, table: str, works: list[Work], allocators: list[Allocator]
) -> tuple[Results, list[Row], list[str]]:
    """Measures and writes one table."""
    record = Record(wish.output, table, keys_of(table, works))
    base = written.folder_of(wish.build, wish.output, table)
    steps = list(plan(works, allocators, wish.rounds))
    commit = commit_of(ROOT)  # others may commit while it runs
    with ends_clearly(record):
        wish.output.mkdir(parents=True, exist_ok=True)
        planned = Plan.of(wish.build, works, allocators, wish.rounds)
        runs = begin(wish, record, planned, base, works)
        more, failures = run_all(wish.build, remaining(steps, runs), record, base)
        runs += more
        failures += changed_meanwhile(planned, Plan.of(wish.build, works, allocators, wish.rounds))
        results = Results(runs)
        rows = summarise(results, works)
        written.collect(base, runs, wish.output)
        write_summary(wish.output / f"{table}_summary.csv", rows)
        write_environment(wish, table, commit, results.versions())
        record.end(complete=not failures)
    warn_when_disturbed(runs, works)
    return results, rows, failures


def any_worse(
    earlier: against.Earlier, wish: Wish, results: Results, works: list[Work], rows: list[Row]
) -> bool:
    """Prints the comparison; one in which nothing could be compared counts as worse."""
    changes = against.compare(earlier, results, works, rows)
    print_changes(changes, str(wish.against))
    if all(change.reason for change in changes):
        console.print("--against: no row could be compared", style="red")
        return True
    return any(change.worse for change in changes)


def run_table(wish: Wish, table: str, known: Sequence[Work]) -> None:
    """Measures, writes and prints one table; status 1 when a run failed, a row became worse, or,
    with --strict, a bar is missed."""
    if wish.strict and wish.rounds == 1:
        raise click.UsageError("--strict needs verdicts, and one round gives none: --rounds 2")
    works = choose_works(known, wish.only, wish.quick)
    allocators = choose_allocators(allocators_of(table, wish.build), wish.allocator, wish.quick)
    try:
        earlier = against.load(wish.against, table) if wish.against else None
    except against.AgainstError as error:
        raise click.UsageError(str(error)) from error
    results, rows, failures = measure_table(wish, table, works, allocators)
    print_medians(results, works)
    print_bars(rows)
    worse = earlier is not None and any_worse(earlier, wish, results, works, rows)
    for failure in failures:
        console.print(failure, style="red", markup=False)
    console.print(f"results are in {wish.output}", markup=False)
    print_missed({row.name: row.met for row in rows})
    missed = wish.strict and any(row.missed for row in rows)
    sys.exit(1 if failures or worse or missed else 0)


def wish_options(command: Callable[..., None]) -> Callable[..., None]:
    """The options that every table takes."""
    folder = click.Path(path_type=Path, file_okay=False)
    for option in (
        click.option(
            "--against", type=click.Path(exists=True, path_type=Path), metavar="DIR_OR_SUMMARY",
            help="Fail when a row is worse than in this earlier result.",
        ),
        click.option("--resume", is_flag=True, help="Go on with an interrupted run."),
        click.option("--strict", is_flag=True, help="Fail when a bar is missed."),
        click.option("--quick", is_flag=True, help="Small runs, one version of each peer."),
        click.option("--allocator", multiple=True, metavar="NAME", help="Leave out other ones."),
        click.option("--only", multiple=True, metavar="WORK", help="Leave out every other work."),
        click.option("--rounds", default=7, show_default=True, type=click.IntRange(min=1)),
        click.option(
            "--output", type=folder, metavar="DIR",
            help="Default: bench/results; bench-part in the build when something is left out.",
        ),
        click.option(
            "--build", default=ROOT / "build", metavar="DIR",
            type=click.Path(exists=True, path_type=Path, resolve_path=True),
        ),
    ):  # fmt: skip
        command = option(command)
    return command


@click.group()
def main() -> None:
    """Benchmarks of tslab."""


@main.command()
@wish_options
def core(**options: Any) -> None:
    """What the core must reach."""
    run_table(wish_of(**options), "core", TABLES["core"])


@main.command()
@wish_options
def epochs(**options: Any) -> None:
    """What epochs must reach."""
    run_table(wish_of(**options), "epochs", TABLES["epochs"])


@main.command()
@wish_options
def suite(**options: Any) -> None:
    """The founding programs and others; also writes their CSV files and histograms."""
    run_table(wish_of(**options), "suite", TABLES["suite"])


@main.command()
@wish_options
def servers(**options: Any) -> None:
    """Patterns of servers, most at a pace: an hour and a half; also writes their histograms."""
    run_table(wish_of(**options), "servers", TABLES["servers"])


@main.command()
@wish_options
def observed(**options: Any) -> None:
    """What being observed costs."""
    run_table(wish_of(**options), "observed", TABLES["observed"])


@main.command("external")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@wish_options
def run_external(folder: Path, **options: Any) -> None:
    """Programs of a mimalloc-bench checkout at DIR, as far as its out/bench has them."""
    try:
        works = external.works_of(folder)
    except external.ExternalError as error:
        raise click.UsageError(str(error)) from error
    run_table(wish_of(**options), "external", works)


@main.command("misuse")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path, exists=True))
@click.option(
    "--build", default=ROOT / "build", metavar="DIR",
    type=click.Path(exists=True, path_type=Path, resolve_path=True),
)  # fmt: skip
@click.option("--output", type=click.Path(path_type=Path, file_okay=False), metavar="DIR")
def run_misuse(folder: Path, build: Path, output: Path | None) -> None:
    """Which mistakes the programs at DIR get away with; bench/misuse.py has the rule."""
    known = [ours_secure(build), *all_allocators(build)]
    allocators = [allocator for allocator in known if allocator.exists()]
    table = (output or build / "bench-part") / "misuse.csv"
    try:
        counts, built, refused = misuse.measure_folder(folder, allocators, table)
    except misuse.MisuseError as error:
        raise click.UsageError(str(error)) from error
    for name, count in sorted(counts.items(), key=lambda pair: -pair[1]):
        console.print(f"{name:<20} caught {count:>4} of {built}")
    for allocator in known:
        if allocator not in allocators:
            console.print(f"missing: {allocator.name} ({allocator.library})", style="yellow")
    for name in refused:
        console.print(f"not built: {name}", style="yellow")
    console.print(f"every outcome: {table}")


if __name__ == "__main__":
    main()
