"""From runs to the table: medians, the best peer, paired ratios and what is met."""

import math
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import median

from measure import Run
from peers import OURS, UNOBSERVED
from work import SHAPES, Bar, Metric, Work

RESAMPLES = 2000
# Latencies are whole steps of the counter; two equal ones differ by each run's calibration.
CALIBRATION = 0.995


@dataclass(frozen=True)
class Row:
    """One line of the table. A ratio above one: we are ahead, whatever the unit."""

    section: str
    name: str
    unit: str
    bar: str
    ours: float | None
    peer_name: str
    peer: float | None
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    met: bool | None = None

    @property
    def missed(self) -> bool:
        return self.met is False


class Results:
    """All runs, by work, allocator and key, in the order of the rounds."""

    def __init__(self, runs: Iterable[Run]) -> None:
        self.series: dict[tuple[str, str], list[Run]] = {}
        for run in runs:
            self.series.setdefault((run.work, run.allocator), []).append(run)

    def values(self, work: str, allocator: str, key: str) -> dict[int, float]:
        """The figure of each round; a round whose run failed is left out."""
        runs = self.series.get((work, allocator), [])
        return {run.number: run.values[key] for run in runs if key in run.values}

    def median(self, work: str, allocator: str, key: str) -> float | None:
        values = self.values(work, allocator, key)
        return median(values.values()) if values else None

    def allocators(self) -> list[str]:
        return list(dict.fromkeys(allocator for _, allocator in self.series))

    def peers(self) -> list[str]:
        return [name for name in self.allocators() if name != OURS]

    def rounds(self, work: str = "") -> int:
        """Of one work, or of them all."""
        series = [runs for (name, _), runs in self.series.items() if work in ("", name)]
        return len({run.number for runs in series for run in runs})

    def versions(self) -> dict[str, str]:
        known = {}
        for run in (runs[0] for runs in self.series.values()):
            if run.version != "unknown":
                known[run.allocator] = run.version
        return known


def advantage(metric: Metric, ours: float, peer: float) -> float:
    """How far ahead `ours` is: above one is better."""
    better, worse = (ours, peer) if metric.higher_is_better else (peer, ours)
    return better / worse if worse > 0 else math.inf


def has_ratio(ours: float, peer: float, pairs: Sequence[float]) -> bool:
    """Growth may be zero or less: nothing is a multiple of that."""
    return min(ours, peer, *pairs) > 0 and max(pairs) < math.inf


def interval(ratios: Sequence[float]) -> tuple[float, float]:
    """Bootstrap 95 % interval of the median of paired ratios."""
    chance = random.Random(1)
    medians = sorted(median(chance.choices(ratios, k=len(ratios))) for _ in range(RESAMPLES))
    return medians[round(RESAMPLES * 0.025)], medians[round(RESAMPLES * 0.975) - 1]


def best_peer(results: Results, work: Work, metric: Metric) -> tuple[str, float] | None:
    found: list[tuple[str, float]] = []
    for name in results.peers():
        value = results.median(work.name, name, metric.key)
        if value is not None:
            found.append((name, value))
    if not found:
        return None
    choose = max if metric.higher_is_better else min
    return choose(found, key=lambda pair: pair[1])


# What is only shown has no judge. The others take the metric, our median, the best peer's (or
# that of whom the bar names) and our advantage.
JUDGES: dict[Bar, Callable[[Metric, float, float, float], bool]] = {
    Bar.AHEAD: lambda _metric, _ours, _peer, ratio: ratio > 1.0,
    Bar.WITHIN_5_PCT: lambda _metric, _ours, _peer, ratio: ratio >= 0.95,
    Bar.AT_OR_BELOW: lambda _metric, _ours, _peer, ratio: ratio >= CALIBRATION,
    Bar.PEAK: lambda metric, ours, peer, _ratio: ours <= max(1.05 * peer, peer + metric.limit),
    Bar.AT_MOST: lambda metric, ours, _peer, _ratio: ours <= metric.limit,
    Bar.AT_LEAST: lambda metric, ours, _peer, _ratio: ours >= metric.limit,
    Bar.OVER_GLIBC: lambda metric, ours, peer, _ratio: ours - peer <= metric.limit,
    Bar.TWICE: lambda _metric, _ours, _peer, ratio: ratio >= 2.0,
    Bar.TIMES_BEST: lambda metric, ours, peer, _ratio: ours <= metric.limit * peer,
    Bar.TIMES_PLAIN: lambda metric, ours, peer, _ratio: ours <= metric.limit * peer,
    Bar.WITHIN_1_PCT: lambda _metric, _ours, _peer, ratio: ratio >= 0.99,
}
# Judged without any peer's figure.
ABSOLUTE = (Bar.AT_MOST, Bar.AT_LEAST)


def bar_text(metric: Metric) -> str:
    limit = f"{metric.limit:,.0f}" if metric.limit >= 10_000 else f"{metric.limit:g}"
    texts = {
        Bar.AHEAD: "> best",
        Bar.WITHIN_5_PCT: ">= 0.95 best",
        Bar.AT_OR_BELOW: "<= best",
        Bar.PEAK: f"<= 1.05 best or best + {limit}",
        Bar.AT_MOST: f"<= {limit}",
        Bar.AT_LEAST: f">= {limit}",
        Bar.OVER_GLIBC: f"<= glibc + {limit}",
        Bar.TWICE: ">= 2.00 best",
        Bar.TIMES_BEST: f"<= {limit} best",
        Bar.TIMES_PLAIN: f"<= {limit} plain",
        Bar.WITHIN_1_PCT: f">= 0.99 {UNOBSERVED}",
        Bar.SHOWN: "-",
    }
    return texts[metric.bar]


# Bars that name whom we are compared with.
NAMED = {Bar.OVER_GLIBC: "glibc", Bar.WITHIN_1_PCT: UNOBSERVED}


def yardstick(results: Results, work: Work, metric: Metric) -> tuple[str, float] | None:
    """Whom we are compared with: the best peer, unless the bar names somebody, or the work another
    work of ours."""
    if work.plain:
        figure = results.median(work.plain, OURS, metric.key)
        return None if figure is None else (work.plain, figure)
    name = NAMED.get(metric.bar)
    if name is None:
        return best_peer(results, work, metric)
    figure = results.median(work.name, name, metric.key)
    return None if figure is None else (name, figure)


def paired_ratios(results: Results, work: Work, metric: Metric, peer_name: str) -> list[float]:
    ours = results.values(work.name, OURS, metric.key)
    series = (work.plain, OURS) if work.plain else (work.name, peer_name)
    peer = results.values(*series, metric.key)
    return [advantage(metric, ours[number], peer[number]) for number in ours.keys() & peer.keys()]


def row_of(results: Results, work: Work, metric: Metric) -> Row:
    ours = results.median(work.name, OURS, metric.key)
    peer_name, peer = yardstick(results, work, metric) or ("", None)
    name = f"{work.name} {metric.key}"
    row = Row(work.section, name, metric.unit, bar_text(metric), ours, peer_name, peer)
    if ours is not None and peer is None and metric.bar in ABSOLUTE:
        return replace(row, met=JUDGES[metric.bar](metric, ours, 0.0, 0.0))
    if ours is None or peer is None:
        return row
    ratio = advantage(metric, ours, peer)
    judge = JUDGES.get(metric.bar)
    row = replace(row, met=None if judge is None else judge(metric, ours, peer, ratio))
    pairs = paired_ratios(results, work, metric, peer_name) or [ratio]
    if not has_ratio(ours, peer, pairs):
        return row
    low, high = interval(pairs)
    return replace(row, ratio=ratio, low=low, high=high)


def geometric_mean(values: Sequence[float]) -> float:
    return math.exp(sum(math.log(value) for value in values) / len(values))


def shapes_mean(results: Results, works: Sequence[Work], allocator: str) -> float | None:
    """Geometric mean of the rates over all shapes; none when one is missing."""
    rates = [results.median(work.name, allocator, "rate") for work in works if work.is_shape]
    present = [value for value in rates if value is not None]
    return geometric_mean(present) if present and len(present) == len(rates) else None


def shapes_row(results: Results, works: Sequence[Work]) -> Row:
    """Ours over the single peer whose geometric mean is best."""
    means = {name: shapes_mean(results, works, name) for name in results.allocators()}
    known = {name: mean for name, mean in means.items() if mean is not None and name != OURS}
    peer_name = max(known, key=lambda name: known[name], default="")
    ours, peer = means.get(OURS), known.get(peer_name)
    row = Row("shapes", "geometric mean of rates", "", ">= 1.2 best", ours, peer_name, peer)
    if ours is None or peer is None:
        return row
    return replace(row, ratio=ours / peer, met=ours >= 1.2 * peer)


def degradation(results: Results, allocator: str) -> float | None:
    small = results.median("random_mixed_256", allocator, "rate")
    large = results.median("random_mixed_8192", allocator, "rate")
    return None if small is None or large is None else small / large


def degradation_row(results: Results) -> Row:
    found = {name: degradation(results, name) for name in results.peers()}
    known = {name: value for name, value in found.items() if value is not None}
    peer_name = min(known, key=lambda name: known[name], default="")
    ours, peer = degradation(results, OURS), known.get(peer_name)
    row = Row("random mixed", "degradation 256 to 8192", "x", "<= 1.2", ours, peer_name, peer)
    if ours is None or peer is None:
        return row
    return replace(row, ratio=peer / ours, met=ours <= 1.2)


def growth_row(results: Results) -> Row:
    """What an allocation costs when most epochs are open, over what it costs when one is."""
    few, many = (results.median(f"many_epochs_{count}", OURS, "near_ns") for count in (1, 100_000))
    growth = None if few is None or many is None else many / few
    row = Row("epochs", "allocation, 1 to 100000 epochs", "x", "< 2", growth, "", None)
    return row if growth is None else replace(row, met=growth < 2.0)


def unjudged(row: Row) -> Row:
    """One round says nothing of the next."""
    return replace(row, low=None, high=None, met=None)


def rows_of(results: Results, work: Work) -> list[Row]:
    rows = [row_of(results, work, metric) for metric in work.metrics]
    return rows if results.rounds(work.name) > 1 else list(map(unjudged, rows))


def rows_of_several(results: Results, works: Sequence[Work]) -> Iterator[Row]:
    """What is worked out from several works, where all of them were chosen."""
    chosen = {work.name for work in works}
    if {shape.name for shape in SHAPES} <= chosen:
        yield shapes_row(results, works)
    if {"random_mixed_256", "random_mixed_8192"} <= chosen:
        yield degradation_row(results)
    if {"many_epochs_1", "many_epochs_100000"} <= chosen:
        yield growth_row(results)


def summarise(results: Results, works: Sequence[Work]) -> list[Row]:
    several = list(rows_of_several(results, works))
    if results.rounds() == 1:
        several = list(map(unjudged, several))
    rows = [row for work in works for row in rows_of(results, work)] + several
    sections = [work.section for work in works]
    return sorted(rows, key=lambda row: sections.index(row.section))
