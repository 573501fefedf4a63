"""Two tables: the founding programs with what else shows a figure of its own, and patterns of
servers."""

from dataclasses import replace

from work import EVERY_ROUND, PATTERNS, Bar, Metric, Work, server
from written import CSV_WRITES, HISTOGRAM_WRITES

WASTE_WRITES = ("--fragmentation", "{folder}/waste.csv")
OLDEST_WRITES = ("--csv", "{folder}/rows-oldest.csv")


def shown(unit: str, *keys: str) -> tuple[Metric, ...]:
    """Figures without a requirement."""
    return tuple(Metric(key, unit, Bar.SHOWN) for key in keys)


def shown_rates(unit: str, *keys: str) -> tuple[Metric, ...]:
    return tuple(Metric(key, unit, Bar.SHOWN, higher_is_better=True) for key in keys)


def rates(unit: str, *keys: str) -> tuple[Metric, ...]:
    """Speeds, held against the best peer's, as are `times`."""
    return tuple(Metric(key, unit, Bar.WITHIN_5_PCT, higher_is_better=True) for key in keys)


def times(unit: str, *keys: str) -> tuple[Metric, ...]:
    return tuple(Metric(key, unit, Bar.WITHIN_5_PCT) for key in keys)


def founding(
    command: tuple[str, ...],
    quick: tuple[str, ...],
    metrics: tuple[Metric, ...],
    writes: tuple[str, ...] = (),
) -> Work:
    name = "_".join(word.removeprefix("--") for word in command)
    quick = (*command, *quick)
    return Work(name, command, quick, metrics, "founding programs", writes=writes)


def churn(command: tuple[str, ...], quick: tuple[str, ...], writes: tuple[str, ...]) -> Work:
    growth = Metric("growth_pct", "%", Bar.AT_MOST, 5.0)
    return founding(command, quick, (growth, *shown("%", "settled_growth_pct")), writes)


FOUNDING = (
    founding(
        ("benchmark_accurate",),
        ("--blocks", "100000", "--operations", "100000"),
        (
            *shown("%", "overhead_pct"),
            *times("ns", "malloc_batch_p50_ns"),
            *shown("ns", "malloc_p99_ns", "malloc_p999_ns"),
            *times("ns", "free_batch_p50_ns"),
            *shown("ns", "free_p99_ns", "free_p999_ns"),
            *shown("%", "slow_path_pct"),
            Metric("efficiency_mean_pct", "%", Bar.AT_LEAST, 92.0, higher_is_better=True),
            Metric("efficiency_least_pct", "%", Bar.AT_LEAST, 80.0, higher_is_better=True),
        ),
        (*CSV_WRITES, *WASTE_WRITES, *HISTOGRAM_WRITES),
    ),
    churn(("churn_test",), ("--live", "10000", "--cycles", "200"), CSV_WRITES),
    # With 10,000 blocks no slab drains.
    churn(("churn_test", "--oldest"), ("--cycles", "100"), OLDEST_WRITES),
    founding(
        ("churn_fixed",),
        ("--live", "10000", "--cycles", "100"),
        (
            Metric("p50_ns", "ns", Bar.OVER_GLIBC),
            *shown("ns", "p99_ns"),
            Metric("p999_ns", "ns", Bar.AT_OR_BELOW),
            Metric("p9999_ns", "ns", Bar.AT_OR_BELOW),
            *shown("ns", "p99999_ns", "max_ns"),
        ),
        HISTOGRAM_WRITES,
    ),
    founding(("smoke_tests",), ("20000",), rates("M allocations/s", "rate")),
    founding(
        ("benchmark_threads",),
        ("--blocks", "10000", "--rounds", "2"),
        (
            *rates("M ops/s", *(f"t{count}_rate" for count in (1, 2, 4, 8, 16))),
            *(
                Metric(f"t{count}_malloc_p99_ns", "ns", Bar.AT_MOST, 1000.0)
                for count in (1, 2, 4, 8, 16)
            ),
        ),
        (*CSV_WRITES, *HISTOGRAM_WRITES),
    ),
)


def threads(mode: str, quick: tuple[str, ...], metrics: tuple[Metric, ...]) -> Work:
    command = ("thread_shapes", mode)
    return Work(f"threads_{mode}", command, (*command, *quick), metrics, "threads")


THREADS = (
    threads("free_only", ("2", "200000"), rates("M blocks/s", "rate")),
    threads("producer_consumer", ("2", "200000"), rates("M blocks/s", "rate")),
    threads("churn", ("2", "500"), rates("k threads/s", "rate")),
    threads("sharing", ("2", "1000", "1000"), rates("M writes/s", "rate")),
    threads(
        "sleeping",
        ("4", "1000", "100"),
        (
            Metric("asleep_bytes", "B", Bar.AT_OR_BELOW),
            *shown("B", "waited_bytes"),
            Metric("ended_bytes", "B", Bar.AT_OR_BELOW),
        ),
    ),
)

SLOTS = tuple(256 * 4**step for step in range(8))


def idle(name: str, least: dict[int, float], *flags: str) -> Work:
    """A run waits a minute, asleep. `least` says how many per cent must be back after
    so many milliseconds. The burst is of 201 MiB, with what the allocators add up to 230. A glance
    waits for the first moment alone."""
    command = ("idle_return", *flags)
    moments = tuple(
        Metric(
            f"returned_{ms}ms_pct", "%", Bar.AT_LEAST if ms in least else Bar.SHOWN,
            least.get(ms, 0.0), higher_is_better=True,
        )
        for ms in (0, 1000, 10_000, 60_000)
    )  # fmt: skip
    return Work(
        name, command, (*command, "40000", "1000", "1001", "1002"), moments,
        "memory over time", asleep_mib=240,
    )  # fmt: skip


def bursts(name: str, *flags: str) -> tuple[Work, Work]:
    """The same bursts where nothing goes back, and where idle memory does."""
    kept = Work(
        f"{name}_kept", ("burst_cost", "--never", *flags), ("burst_cost", "--never", *flags, "3"),
        shown("ms", "cpu_ms", "burst_ms"), "memory over time", ours_alone=True,
    )  # fmt: skip
    given = replace(
        kept, name=name, command=("burst_cost", *flags), quick=("burst_cost", *flags, "3"),
        metrics=(Metric("cpu_ms", "ms", Bar.TIMES_PLAIN, 1.03), *shown("ms", "burst_ms")),
        plain=kept.name,
    )  # fmt: skip
    return kept, given


MEMORY = (
    *bursts("bursts"),
    *bursts("bursts_large", "--large"),
    idle("idle_return", {1000: 95.0, 10_000: 99.0}),
    idle("idle_return_pinned", {}, "--pinned"),
    idle("idle_return_pinned_seldom", {1000: 90.0}, "--pinned-seldom"),
    Work(
        "realloc_growth",
        ("realloc_growth",),
        ("realloc_growth", "4", "1000000", "2"),
        tuple(
            metric
            for way in ("double", "half", "step")
            for metric in (
                *times("ms", f"{way}_ms", f"{way}_round_ms"),
                *shown("%", f"{way}_overhead_pct"),
            )
        ),
        "memory over time",
    ),
    Work(
        "ws_sweep",
        ("ws_sweep",),
        ("ws_sweep", "200000", "65536"),
        (
            *rates("M ops/s", *(f"rate_{slots}" for slots in SLOTS)),
            *shown("x", "degradation"),
        ),
        "working sets",
    ),
)


# Seconds a run, and rounds: ten have 20,000 requests at the slowest pace, and all runs take an hour
# and a half; of three rounds an interval can be drawn. Without a pace two seconds hold more.
PACED = (10, 3)
UNPACED = (2, EVERY_ROUND)


def beside_peers(
    name: str, mode: str, metrics: tuple[Metric, ...], *options: str, pace: tuple[int, int] = PACED
) -> Work:
    """Ours with an epoch for each request, or as any malloc; peers as any malloc."""
    seconds, rounds = pace
    return replace(
        server(name, mode, metrics, *options, seconds=seconds),
        most_rounds=rounds, peer_mode="--allocator=malloc", ours_alone=mode == "malloc",
        writes=("--hgrm={folder}/values.hgrm",),
    )  # fmt: skip


def at_preset(pattern: str, name: str, mode: str) -> Work:
    growth = (
        shown("x", "rss_growth")
        if pattern == "leak"
        else (Metric("rss_growth", "x", Bar.AT_MOST, 1.01),)
    )
    metrics = (
        *shown("ns", "p50_ns", "p99_ns", "p999_ns", "p9999_ns", "max_ns"),
        *shown("B", "rss_peak_bytes"),
        *growth,
    )
    return beside_peers(name, mode, metrics, f"--pattern={pattern}")


def beyond_preset(pattern: str, factor: str) -> Work:
    """At a multiple of the preset rate, or as fast as it goes."""
    unpaced = factor == "max"
    metrics = (
        *shown("ns", "p50_ns", "p99_ns"),
        Metric("p999_ns", "ns", Bar.AT_OR_BELOW),
        *shown("ns", "p9999_ns"),
        *(rates if unpaced else shown_rates)("requests/s", "rate"),
    )
    options = (f"--pattern={pattern}", f"--rate_factor={factor}")
    pace = UNPACED if unpaced else PACED
    return beside_peers(f"synthetic_{pattern}_x{factor}", "tslab", metrics, *options, pace=pace)


SERVERS = (
    *(at_preset(pattern, f"synthetic_{pattern}", "tslab") for pattern in PATTERNS),
    *(at_preset(pattern, f"synthetic_{pattern}_plain", "malloc") for pattern in PATTERNS),
    *(
        beyond_preset(pattern, factor)
        for pattern in PATTERNS
        if pattern != "leak"
        for factor in ("2", "10", "max")
    ),
)


def arena(mode: str, ours_alone: bool = False) -> Work:
    command = ("arena_request", mode)
    metrics = (shown if ours_alone else times)("ns", "request_ns")
    return Work(
        f"arena_{mode}", command, (*command, "5000"), metrics,
        "requests and arenas", ours_alone=ours_alone,
    )  # fmt: skip


ARENAS = (
    *(arena(mode) for mode in ("malloc", "monotonic", "pool", "talloc", "apr", "obstack")),
    *(arena(mode, ours_alone=True) for mode in ("epoch_free", "epoch_release")),
)

CURVE = Work(
    "epoch_curve",
    ("epoch_curve",),
    ("epoch_curve", "1000", "20000", "2"),
    tuple(
        Metric(f"{key}_{10**power}", unit, Bar.SHOWN)
        for key, unit in (("alloc_ns", "ns"), ("enter_leave_ns", "ns"), ("filled_kib", "KiB"))
        for power in range(6)
    ),
    "epochs",
    ours_alone=True,
)

SUITE = (*FOUNDING, *THREADS, *MEMORY, *ARENAS, CURVE)
SUITE_KEYS = (
    "floor_ns", "faults", "switches", "resident_bytes", "first_bytes", "last_bytes", "top_bytes",
    "live_bytes", "requests",
)  # fmt: skip
SERVERS_KEYS = (
    "faults", "switches", "requests", "late", "overslept", "unserved", "leaked", "survivors",
)  # fmt: skip
