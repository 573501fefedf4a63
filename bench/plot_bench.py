"""Draws the result files: plot_bench.py [--input DIR] [--output DIR].

A chart whose file is missing is left out with the command that makes the file.
"""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import chart_data as data
import click
import matplotlib as mpl
from charts import Line, Lines, Panel, Points, draw_lines, draw_points
from matplotlib.figure import Figure
from results_folder import results_folder
from summary import Results

ROOT = Path(__file__).resolve().parent.parent
OPERATIONS = {
    "malloc": "malloc, fresh memory",
    "free": "free, fresh memory",
    "malloc_warm": "malloc, the same memory again",
    "free_warm": "free, the same memory again",
}
MARKS = ("p50", "p99", "p999", "p9999")
PERCENTILES = ("p50", "p95", "p99", "p999")
SLABS = {
    "allocated": "opened",
    "recycled": "emptied and given up",
    "overflowed": "overflowed",
}
RETURN_MS = (0, 1000, 10_000, 60_000)
MARK_NAMES = {
    "p50": "p50", "p95": "p95", "p99": "p99", "p999": "p99.9", "p9999": "p99.99",
}  # fmt: skip


def latency_cdf(folder: Path) -> Figure:
    curves = data.tails(folder, "churn_fixed-malloc")
    lines = Lines(
        "share of allocations that take longer", "latency of one malloc, timer included (ns)",
        {name: [(x, y, y, y) for x, y in curve] for name, curve in curves.items()},
        log_x=True, log_y=True, falling_x=True, marks=False,
    )  # fmt: skip
    return draw_lines("Latency of malloc under churn, 128 B, all rounds (lower is better)", [lines])


def percentiles_of(rows: Sequence[data.Row]) -> dict[str, Line]:
    return {
        name: [
            (float(place), *data.spread([float(row[f"{mark}_ns"]) for row in mine]))
            for place, mark in enumerate(PERCENTILES)
        ]
        for name, mine in data.by_allocator(rows).items()
    }


def latency_percentiles(folder: Path) -> Figure:
    rows = data.rows(folder, "latency.csv")
    panels = [
        Lines(
            "",
            "latency, timer in all but p50 (ns)",
            percentiles_of([row for row in rows if row["op"] == operation]),
            log_y=True,
            x_names=[MARK_NAMES[mark] for mark in PERCENTILES],
            dodge=True,
            name=OPERATIONS.get(operation, operation),
        )
        for operation in dict.fromkeys(row["op"] for row in rows)
    ]
    return draw_lines(
        "Latency of equal blocks of 128 B, one thread (lower is better; bars: 95 % interval)",
        panels,
    )


def against_threads(folder: Path, key: str, scale: float, label: str, title: str) -> Figure:
    rows = data.rows(folder, "scaling.csv")
    series = {
        name: [
            (float(count), *data.spread([float(row[key]) * scale for row in mine]))
            for count, mine in data.by_number(own, "threads").items()
        ]
        for name, own in data.by_allocator(rows).items()
    }
    counts = sorted({int(row["threads"]) for row in rows})
    lines = Lines("threads", label, series, log_x=True, log_y=True, x_ticks=counts)
    return draw_lines(title, [lines])


def p99_vs_threads(folder: Path) -> Figure:
    title = "99th percentile of malloc by threads, 128 B (lower is better; bars: 95 % interval)"
    return against_threads(folder, "p99_ns", 1.0, "p99 of malloc, timer included (ns)", title)


def scaling(folder: Path) -> Figure:
    title = "Throughput by threads, 128 B (higher is better; bars: 95 % interval)"
    label = "malloc and free calls (million/s)"
    return against_threads(folder, "throughput_ops_sec", 1e-6, label, title)


def rss_over_time(folder: Path) -> Figure:
    rows = data.rows(folder, "rss_churn.csv")
    series = {
        name: [
            (float(cycle), *data.spread([float(row["rss_mib"]) for row in mine]))
            for cycle, mine in data.by_number(own, "cycle").items()
        ]
        for name, own in data.by_allocator(rows).items()
    }
    lines = Lines("cycle of churn", "resident memory (MiB)", series, bands=True)
    return draw_lines(
        "Resident memory under churn of 128 B blocks (lower is better; bands: 95 % interval)",
        [lines],
    )


def counts_of_slabs(rows: Sequence[data.Row]) -> dict[str, Line]:
    """A line for each count that is told."""
    return {
        words: [
            (float(cycle), *data.spread([float(row[f"slabs_{key}"]) for row in mine]))
            for cycle, mine in data.by_number(rows, "cycle").items()
        ]
        for key, words in SLABS.items()
        if all(row[f"slabs_{key}"] for row in rows)
    }


def panels_of_slabs(folder: Path, file: str, freed: str) -> list[Lines]:
    """One for each allocator that tells its counts."""
    rows = [row for row in data.rows(folder, file) if row["slabs_allocated"]]
    if not rows:
        raise data.MissingError(f"no allocator in {file} tells its counts of slabs")
    return [
        Lines(
            "cycle of churn",
            "slabs since the start",
            counts_of_slabs(own),
            name=f"{name}: {freed} tenth of the blocks freed, as many allocated",
            bands=True,
        )
        for name, own in data.by_allocator(rows).items()
    ]


def slab_lifecycle(folder: Path) -> Figure:
    panels = [
        *panels_of_slabs(folder, "rss_churn.csv", "a random"),
        *panels_of_slabs(folder, "rss_churn_oldest.csv", "the oldest"),
    ]
    return draw_lines(
        "Slabs under churn of 128 B blocks (a slab: memory for blocks of one size; bands: 95 %"
        " interval)\nThe distance between the lines is the open slabs. Lines are level where freed"
        " places are used again,\nand rise together where drained slabs are; memory grows where the"
        " distance does",
        panels,
    )


def fragmentation(folder: Path) -> Figure:
    rows = data.rows(folder, "fragmentation.csv")
    series = {
        name: [
            (float(size), *data.spread([float(row["efficiency_pct"]) for row in mine]))
            for size, mine in data.by_number(own, "requested").items()
        ]
        for name, own in data.by_allocator(rows).items()
    }
    sizes = (48, 64, 96, 128, 192, 256, 384, 512, 768)
    lines = Lines(
        "requested size (B)",
        "requested of usable bytes (%)",
        series,
        log_x=True,
        x_ticks=sizes,
        covers=(75.0, 100.0),
    )
    return draw_lines("What rounding to size classes leaves (higher is better)", [lines])


def latency_comparison(folder: Path) -> Figure:
    results = data.results(folder, "core")
    panels = []
    for work, words in (("churn_128", "128 B"), ("churn_mixed", "16 to 1,039 B")):
        for operation in ("malloc", "free"):
            points = {
                MARK_NAMES[mark]: data.spreads(results, work, f"{operation}_{mark}_ns")
                for mark in MARKS
            }
            panels.append(
                Points("latency, timer included (ns)", points, name=f"{operation}, {words}")
            )
    return draw_points(
        "Latency under churn, 100,000 blocks live (left is better; bars: 95 % interval)",
        panels,
        columns=2,
    )


def rss_comparison(folder: Path) -> Figure:
    results = data.results(folder, "core")
    works = data.works_with(results, "peak_kib")
    points: dict[str, dict[str, Panel]] = {}
    for work in works:
        spreads = data.spreads(results, work, "peak_kib")
        least = min(middle for middle, _, _ in spreads.values())
        for name, (middle, low, high) in spreads.items():
            points.setdefault(name, {})[work] = (middle / least, low / least, high / least)
    label = "peak of resident memory over the least of all allocators"
    return draw_points(
        "Peak of resident memory by program (left is better; bars: 95 % interval)",
        [Points(label, points, allocators=True)],
        columns=1,
    )


def returned(results: Results, work: str, moments: Sequence[int]) -> dict[str, Line]:
    series: dict[str, Line] = {}
    for place, ms in enumerate(moments):
        for name, spread in data.spreads(results, work, f"returned_{ms}ms_pct").items():
            series.setdefault(name, []).append((float(place), *spread))
    return series


def panel_of_return(folder: Path, work: str, words: str) -> Lines:
    results = data.results(folder, "suite")
    moments = [ms for ms in RETURN_MS if data.has_key(results, work, f"returned_{ms}ms_pct")]
    if not moments:
        raise data.missing_file(folder, f"{work} in suite_runs.csv", "suite")
    return Lines(
        "seconds after the burst",
        "freed memory that is back at the system (%)",
        returned(results, work, moments),
        x_names=[f"{ms // 1000}" for ms in moments],
        name=words,
        dodge=True,
        covers=(0.0, 100.0),
    )


def madvise_throughput(folder: Path) -> Figure:
    panels = [
        panel_of_return(folder, "idle_return", "all freed"),
        panel_of_return(folder, "idle_return_pinned", "1 in 50 kept"),
    ]
    return draw_lines("What a burst gives back (higher is better; bars: 95 % interval)", panels)


CHARTS: dict[str, Callable[[Path], Figure]] = {
    "latency_cdf": latency_cdf,
    "latency_percentiles": latency_percentiles,
    "p99_vs_threads": p99_vs_threads,
    "rss_over_time": rss_over_time,
    "slab_lifecycle": slab_lifecycle,
    "fragmentation": fragmentation,
    "scaling": scaling,
    "latency_comparison": latency_comparison,
    "rss_comparison": rss_comparison,
    "madvise_throughput": madvise_throughput,
}


def save(figure: Figure, output: Path, name: str) -> None:
    """Without the program's version: the same figures make the same files."""
    figure.savefig(output / f"{name}.png", metadata={"Software": None}, dpi=110)


def draw_all(folder: Path, output: Path, names: Sequence[str]) -> list[str]:
    """A line for each chart that could not be drawn."""
    mpl.use("agg")
    mpl.rcParams.update({"font.size": 9})
    missing = []
    for name in names:
        try:
            save(CHARTS[name](folder), output, name)
        except data.MissingError as error:
            missing.append(f"{name}: {error}")
    return missing


@click.command()
@results_folder
@click.option(
    "--output", default=ROOT / "docs" / "images", metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
)  # fmt: skip
def main(folder: Path, output: Path) -> None:
    """Draws every chart whose files are in the input folder; status 1 when that is none."""
    try:
        output.mkdir(parents=True, exist_ok=True)
        missing = draw_all(folder, output, list(CHARTS))
    except OSError as error:
        raise click.ClickException(f"cannot write charts: {error}") from error
    for line in missing:
        click.echo(f"not drawn: {line}", err=True)
    click.echo(f"{len(CHARTS) - len(missing)} of {len(CHARTS)} charts drawn")
    sys.exit(1 if len(missing) == len(CHARTS) else 0)


if __name__ == "__main__":
    main()
