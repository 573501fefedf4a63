"""What programs write besides their result line: rows of the CSV files, and histograms.

Each run has a folder of its own below the build, so that a run that is not in the results leaves
nothing in them.
"""

import csv
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

from hdrh.histogram import HdrHistogram  # type: ignore[import-untyped]
from measure import Run, RunError
from work import Work

HEADERS = {
    "latency.csv": "allocator,threads,size_class,op,"
    "avg_ns,p50_ns,p95_ns,p99_ns,p999_ns,ops_per_sec",
    "rss_churn.csv": "allocator,cycle,rss_mib,slabs_allocated,slabs_recycled,slabs_overflowed",
    "fragmentation.csv": "allocator,size_class,requested,rounded,wasted,efficiency_pct",
    "scaling.csv": "allocator,threads,throughput_ops_sec,avg_ns,p50_ns,p95_ns,p99_ns",
}
FILE_OF_HEADER = {header: file for file, header in HEADERS.items()}
# Values are true to a hundredth, where the programs' own buckets are to a sixty-fourth; a third
# digit takes seven times as long to write.
LOWEST_NS, HIGHEST_NS, DIGITS = 1, 3_600_000_000_000, 2
CSV_WRITES = ("--csv", "{folder}/rows.csv")
HISTOGRAM_WRITES = ("--hgrm", "{folder}/values.hgrm")


@dataclass(frozen=True)
class Histogram:
    """How often each value came, of one operation."""

    operation: str
    counts: dict[int, int]


def folder_of(build: Path, output: Path, table: str) -> Path:
    return build.joinpath("written", *output.resolve().parts[1:], table)


def folder_of_run(base: Path, number: int, work: str, allocator: str) -> Path:
    return base / str(number) / work / allocator


def rows_of(path: Path) -> Iterator[tuple[str, list[str]]]:
    """Each row with the file that its header belongs to; one text may have several headers."""
    file = ""
    for line in path.read_text().splitlines():
        if line in FILE_OF_HEADER:
            file = FILE_OF_HEADER[line]
            continue
        cells = next(csv.reader(StringIO(line)), [])
        if not file or len(cells) != HEADERS[file].count(",") + 1:
            raise RunError(f"{path.name}: neither a header nor a row below one: {line}")
        yield file, cells


def operation_of(pairs: dict[str, str]) -> str:
    threads = pairs.get("threads")
    return pairs.get("operation", "all") + (f"_t{threads}" if threads else "")


def file_of_rows(path: Path, file: str) -> str:
    """The file that rows are collected in: that of their header; a program that works in another
    way names it, as in `rows-oldest.csv`."""
    _, _, way = path.stem.partition("-")
    return f"{Path(file).stem}_{way}.csv" if way else file


def histograms_of(path: Path) -> list[Histogram]:
    """Lines `value_ns count`; a comment of key=value pairs begins each histogram."""
    found: list[Histogram] = []
    for line in path.read_text().splitlines():
        if line.startswith("#"):
            pairs = dict(word.split("=", 1) for word in line.split() if "=" in word)
            found.append(Histogram(operation_of(pairs), {}))
            continue
        try:
            value, count = line.split()
            counts, value_ns = found[-1].counts, round(float(value))
            counts[value_ns] = counts.get(value_ns, 0) + int(count)
        except (ValueError, IndexError) as error:
            raise RunError(f"{path.name}: not `value_ns count` below a comment: {line}") from error
    return found


def check(folder: Path, work: Work) -> None:
    """A run whose files are missing or unreadable must not enter the results."""
    wanted = [word.split("{folder}/")[1] for word in work.writes if "{folder}/" in word]
    for name in wanted:
        if not (folder / name).is_file():
            raise RunError(f"wrote no {name}")
        read = (
            list(rows_of(folder / name)) if name.endswith(".csv") else histograms_of(folder / name)
        )
        if not read:
            raise RunError(f"{name} has nothing but headers")


def without_files(base: Path, works: Sequence[Work], runs: Iterable[Run]) -> list[Run]:
    """Runs whose programs write files, and whose folders are gone."""
    writing = {work.name for work in works if work.writes}
    return [
        run
        for run in runs
        if run.work in writing
        and not folder_of_run(base, run.number, run.work, run.allocator).is_dir()
    ]


def merged(histograms: Iterable[Histogram]) -> HdrHistogram:
    whole = HdrHistogram(LOWEST_NS, HIGHEST_NS, DIGITS)
    for histogram in histograms:
        for value, count in histogram.counts.items():
            whole.record_value(min(max(value, LOWEST_NS), HIGHEST_NS), count)
    return whole


def files_of(base: Path, runs: Iterable[Run], kind: str) -> Iterator[tuple[Run, Path]]:
    for run in runs:
        folder = folder_of_run(base, run.number, run.work, run.allocator)
        for path in sorted(folder.glob(kind)):
            yield run, path


def collect_rows(base: Path, runs: Iterable[Run], output: Path) -> None:
    rows: dict[str, list[list[str]]] = {}
    for run, path in files_of(base, runs, "*.csv"):
        for file, cells in rows_of(path):
            lines = rows.setdefault(file_of_rows(path, file), [HEADERS[file].split(",")])
            # The process knows malloc's file; two allocators may share its name.
            lines.append([run.allocator, *cells[1:]])
    for file, lines in rows.items():
        with (output / file).open("w", newline="") as out:
            csv.writer(out, lineterminator="\n").writerows(lines)


def collect_histograms(base: Path, runs: Iterable[Run], output: Path) -> None:
    histograms: dict[str, list[Histogram]] = {}
    for run, path in files_of(base, runs, "*.hgrm"):
        for one in histograms_of(path):
            name = f"{run.work}-{one.operation}-{run.allocator}.hgrm"
            histograms.setdefault(name, []).append(one)
    for name, parts in histograms.items():
        with (output / name).open("wb") as out:
            merged(parts).output_percentile_distribution(out, 1.0)


def collect(base: Path, runs: Sequence[Run], output: Path) -> None:
    """The CSV files with a row a round, and each allocator's histogram of all rounds."""
    collect_rows(base, runs, output)
    collect_histograms(base, runs, output)
