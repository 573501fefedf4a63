"""The result files as the charts need them: medians and intervals of each allocator's rounds."""

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import median

from record import load_runs
from summary import Results, interval

Row = dict[str, str]
Spread = tuple[float, float, float]  # median, and its 95 % interval

COMMANDS = {"core": "bench/run core", "epochs": "bench/run epochs", "suite": "bench/run suite"}


class MissingError(Exception):
    """A chart's file is not there, or does not say what the chart shows."""


def missing_file(folder: Path, file: str, table: str) -> MissingError:
    return MissingError(f"no {file} in {folder.name}/; it is made by: {COMMANDS[table]}")


def rows(folder: Path, file: str) -> list[Row]:
    path = folder / file
    if not path.exists():
        raise missing_file(folder, file, "suite")
    with path.open(newline="") as source:
        return list(csv.DictReader(source))


def results(folder: Path, table: str) -> Results:
    path = folder / f"{table}_runs.csv"
    if not path.exists():
        raise missing_file(folder, path.name, table)
    return Results(load_runs(path))


def by_allocator(lines: Iterable[Row]) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for row in lines:
        found.setdefault(row["allocator"], []).append(row)
    return found


def by_number(lines: Iterable[Row], key: str) -> dict[int, list[Row]]:
    found: dict[int, list[Row]] = {}
    for row in lines:
        found.setdefault(int(row[key]), []).append(row)
    return dict(sorted(found.items()))


def spread(values: Sequence[float]) -> Spread:
    if len(set(values)) == 1:
        return values[0], values[0], values[0]
    return median(values), *interval(values)


def has_key(known: Results, work: str, key: str) -> bool:
    return any(known.values(work, name, key) for name in known.allocators())


def spreads(known: Results, work: str, key: str) -> dict[str, Spread]:
    found = {}
    for name in known.allocators():
        values = list(known.values(work, name, key).values())
        if values:
            found[name] = spread(values)
    if not found:
        raise MissingError(f"the runs have no {work} with {key}")
    return found


def works_with(known: Results, key: str) -> list[str]:
    """The works that every allocator ran, by their names."""
    works = list(dict.fromkeys(work for work, _ in known.series))
    return [
        work for work in works if all(known.values(work, name, key) for name in known.allocators())
    ]


def tail_of(path: Path) -> list[tuple[float, float]]:
    """Share of values that are larger, and the value, from the percentile format."""
    points = []
    for line in path.read_text().splitlines()[1:]:
        cells = line.split()
        if len(cells) == 4 and not line.startswith("#"):
            points.append((1.0 - float(cells[1]), float(cells[0])))
    return [point for point in points if point[0] > 0]


def tails(folder: Path, prefix: str) -> dict[str, list[tuple[float, float]]]:
    """Each allocator's merged histogram."""
    paths = sorted(folder.glob(f"{prefix}-*.hgrm"))
    if not paths:
        raise missing_file(folder, f"{prefix}-*.hgrm", "suite")
    return {path.stem.removeprefix(f"{prefix}-"): tail_of(path) for path in paths}
