"""What is measured: programs with their arguments, and what each result must reach."""

from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path

EVERY_ROUND = 1_000_000


class Bar(Enum):
    """How a metric is judged. After a change judge.py writes the tables' verdicts anew."""

    AHEAD = "ahead of every peer"
    WITHIN_5_PCT = "at most 5 % behind the best peer"
    AT_OR_BELOW = "at or below the best peer"
    PEAK = "at or below 1.05 of the best peer, or at most this much over it"
    AT_MOST = "at most"
    AT_LEAST = "at least"
    OVER_GLIBC = "at most this much over glibc"
    WITHIN_1_PCT = "at most 1 % behind the same unobserved"
    TWICE = "at least twice as good as every peer"
    TIMES_BEST = "at most so many times the best peer"
    TIMES_PLAIN = "at most so many times the same work without epochs"
    SHOWN = "no requirement"


@dataclass(frozen=True)
class Metric:
    """One figure of a program's result."""

    key: str
    unit: str
    bar: Bar
    limit: float = 0.0
    higher_is_better: bool = False


@dataclass(frozen=True)
class Work:
    """One program with its arguments; `quick` are those for a glance. Peers may run it in a mode of
    their own, its first argument, or not at all. `writes` are further arguments by which the
    program writes files into `{folder}`. `plain` names the work that does the same without epochs.
    A program that sleeps most of its time, and whose figures
    are bytes, says what it holds meanwhile, `asleep_mib`: its runs go side by side. One that takes
    much memory finds `backed_mib` of it with the host (backing.py). A foreign program comes from
    elsewhere: it runs in `place` and prints no result line; `score` finds its figure."""

    name: str
    command: tuple[str, ...]
    quick: tuple[str, ...]
    metrics: tuple[Metric, ...]
    section: str
    is_shape: bool = False
    system: bool = False
    most_rounds: int = EVERY_ROUND
    peer_mode: str = ""
    ours_alone: bool = False
    plain: str = ""
    writes: tuple[str, ...] = ()
    asleep_mib: int = 0
    backed_mib: int = 0
    place: Path | None = None
    input: Path | None = None
    score: str = ""

    @property
    def foreign(self) -> bool:
        return self.place is not None

    @property
    def sleeps(self) -> bool:
        return self.asleep_mib > 0

    def hurried(self) -> "Work":
        return replace(self, command=self.quick, backed_mib=0)

    def command_of(self, ours: bool) -> tuple[str, ...]:
        if ours or not self.peer_mode:
            return self.command
        return (self.command[0], self.peer_mode, *self.command[2:])

    def text(self, ours: bool = True) -> str:
        """The command line for people; a foreign program's place is that of one machine."""
        program, *arguments = self.command_of(ours)
        return " ".join((Path(program).name, *arguments))


PEAK = Metric("peak_kib", "KiB", Bar.PEAK, 512.0)


def rate(unit: str, bar: Bar) -> Metric:
    return Metric("rate", unit, bar, higher_is_better=True)


def random_mixed(slots: int) -> Work:
    name = "bench_random_mixed"
    return Work(
        f"random_mixed_{slots}",
        (name, "10000000", str(slots)),
        (name, "1000000", str(slots)),
        (rate("M ops/s", Bar.AHEAD), Metric("slow_path_pct", "%", Bar.SHOWN)),
        "random mixed",
    )


def shape(
    name: str, unit: str, quick: tuple[str, ...], arguments: tuple[str, ...] = (), label: str = ""
) -> Work:
    metrics = (rate(unit, Bar.WITHIN_5_PCT), PEAK)
    return Work(
        label or name.removeprefix("shape_"),
        (name, *arguments),
        (name, *quick),
        metrics,
        "shapes",
        is_shape=True,
    )


def latency(name: str, flags: tuple[str, ...]) -> Work:
    marks = ("p50", "p99", "p999", "p9999")
    metrics = tuple(
        Metric(f"{operation}_{mark}_ns", "ns", Bar.AT_OR_BELOW)
        for operation in ("malloc", "free")
        for mark in marks
    )
    command = ("churn_latency", *flags)
    return Work(name, command, (*command, "1000000"), metrics, "latency under churn")


SHAPES = (
    shape("shape_tiny", "M ops/s", ("4000000",)),
    shape("shape_tiny", "M ops/s", ("--lists", "4000000"), ("--lists",), "tiny_lists"),
    shape("shape_larson", "M ops/s", ("2", "4000000")),
    shape("shape_larson", "M ops/s", ("--sized", "2", "4000000"), ("--sized",), "larson_sized"),
    shape("shape_xmalloc", "M objects/s", ("2", "2000000")),
    shape("shape_cache_scratch", "M writes/s", ("2", "4000")),
    shape("shape_cache_thrash", "M writes/s", ("2", "4000")),
    shape("shape_thread_churn", "k threads/s", ("2", "3000")),
    replace(shape("shape_large", "blocks/s", ("40",)), backed_mib=1024),
    shape("shape_rptest", "M ops/s", ("2", "1000000")),
    shape("shape_batches", "M ops/s", ("2", "8000000")),
    shape("shape_alloc_test", "M ops/s", ("2", "6000000")),
)

CORE = (
    random_mixed(256),
    random_mixed(8192),
    random_mixed(100_000),
    Work(
        "pair_instructions",
        ("pair_instructions",),
        ("pair_instructions", "200"),
        (Metric("pair_instructions", "instructions", Bar.AT_MOST, 36.0),),
        "instructions",
        most_rounds=3,
    ),
    *SHAPES,
    Work(
        "producer_consumer",
        ("producer_consumer",),
        ("producer_consumer", "2000000"),
        (rate("M objects/s", Bar.AHEAD),),
        "hand-over and bulk",
    ),
    Work(
        "bulk_random",
        ("bulk_random",),
        ("bulk_random", "100000"),
        (Metric("malloc_ns", "ns", Bar.AHEAD), Metric("free_ns", "ns", Bar.AHEAD)),
        "hand-over and bulk",
    ),
    latency("churn_128", ()),
    latency("churn_mixed", ("--mixed",)),
    Work(
        "rss_blocks",
        ("rss_blocks",),
        ("rss_blocks", "200000"),
        (Metric("overhead_pct", "%", Bar.AT_MOST, 4.0),),
        "memory",
        most_rounds=3,
    ),
    Work(
        "startup_true",
        ("true",),
        ("true",),
        (Metric("peak_kib", "KiB", Bar.OVER_GLIBC, 1024.0),),
        "memory",
        system=True,
    ),
    Work(
        "scaling_2",
        ("scaling", "2"),
        ("scaling", "2", "500000"),
        (Metric("ratio", "x", Bar.AT_LEAST, 1.9, higher_is_better=True),),
        "threads",
    ),
    Work(
        "threads_p99",
        ("threads_p99", "16"),
        ("threads_p99", "16", "1600000"),
        (Metric("malloc_p99_ns", "ns", Bar.AT_MOST, 1000.0),),
        "threads",
    ),
)


def ours(
    name: str, command: tuple[str, ...], quick: tuple[str, ...], metrics: tuple[Metric, ...]
) -> Work:
    """What only we can do, held against a figure."""
    return Work(name, command, quick, metrics, "epochs", ours_alone=True)


def at_most(key: str, unit: str, limit: float) -> Metric:
    return Metric(key, unit, Bar.AT_MOST, limit)


def times_plain(key: str, unit: str, limit: float) -> Metric:
    return Metric(key, unit, Bar.TIMES_PLAIN, limit)


def shown(key: str, unit: str) -> Metric:
    return Metric(key, unit, Bar.SHOWN)


def beside_plain(
    name: str, program: str, sizes: tuple[tuple[str, ...], tuple[str, ...]],
    shown_of_plain: tuple[Metric, ...], modes: dict[tuple[str, ...], tuple[Metric, ...]],
) -> tuple[Work, ...]:  # fmt: skip
    """A work without epochs, and the same in each mode, that is flags of the program. The second
    size is for a glance."""
    full, glance = sizes
    plain = Work(
        f"{name}_plain", (program, *full), (program, *glance), shown_of_plain, name, ours_alone=True
    )
    return plain, *(
        replace(
            plain, name=f"{name}_{'_'.join(flag.removeprefix('--') for flag in flags)}",
            command=(program, *flags, *full), quick=(program, *flags, *glance), metrics=metrics,
            plain=plain.name,
        )
        for flags, metrics in modes.items()
    )  # fmt: skip


def request(name: str, mode: str, peer_mode: str, bar: Bar, limit: float = 0.0) -> Work:
    command = ("request_objects", mode)
    metrics = (Metric("request_ns", "ns", bar, limit),)
    return Work(
        name, command, (*command, "20000"), metrics, "requests of 100 objects", peer_mode=peer_mode
    )


def request_ways(unit: str, own: float) -> tuple[Metric, ...]:
    """Ways to serve a request in an epoch, over the same without."""
    return (
        *(shown(f"{way}_{unit}", unit) for way in ("plain", "plain_at_once", "monotonic")),
        at_most("own_x", "x", own),
        at_most("own_at_once_x", "x", 1.2),
        shown("own_freed_late_x", "x"),
        at_most("long_x", "x", 1.03),
        at_most("long_at_once_x", "x", 1.2),
        at_most("released_x", "x", 1.0),
    )


def container_ways(unit: str) -> tuple[Metric, ...]:
    """Containers on the resource of an epoch, over the same on the standard library's arena."""
    return (
        *(shown(f"{way}_{unit}", unit) for way in ("plain", "monotonic")),
        shown("plain_x", "x"),
        at_most("epoch_x", "x", 1.1),
        at_most("arena_x", "x", 1.1),
        at_most("pieces_x", "x", 1.1),
        at_most("arena_pieces_x", "x", 1.1),
        shown("entered_x", "x"),
        shown("shared_x", "x"),
    )


def many_epochs(count: int, metrics: tuple[Metric, ...] = ()) -> Work:
    command = ("many_epochs", str(count))
    return ours(f"many_epochs_{count}", command, (*command, "2000000"), metrics)


def lifetime_mix(name: str, flags: tuple[str, ...], bar: Bar, limit: float = 0.0) -> Work:
    command = ("lifetime_mix", *flags)
    metrics = (Metric("resident_over_live", "x", bar, limit),)
    quick = (*command, "3", "250")
    return Work(name, command, quick, metrics, "lifetimes mixed", ours_alone=bar is Bar.AT_MOST)


# Requests of which a few objects survive.
SURVIVORS = beside_plain(
    "survivors",
    "lifetime_mix",
    (("--idle", "12", "400"), ("--idle", "3", "100", "250")),
    (shown("peak_bytes", "bytes"), shown("resident_over_live", "x")),
    {
        ("--wrapped",): (
            times_plain("peak_bytes", "bytes", 1.1),
            times_plain("resident_over_live", "x", 1.1),
        ),
        ("--annotated",): (
            times_plain("peak_bytes", "bytes", 1.1),
            times_plain("resident_over_live", "x", 1.1),
        ),
        ("--annotated", "--helper"): (at_most("resident_over_live", "x", 1.3),),
    },
)

# The server of examples/server.
SERVED = (
    times_plain("cpu_us", "us", 1.05),
    times_plain("peak_mb", "MiB", 1.1),
    times_plain("idle_mb", "MiB", 1.1),
)
SERVER = beside_plain(
    "server",
    "epoch_server",
    ((), ("20000",)),
    (shown("cpu_us", "us"), shown("peak_mb", "MiB"), shown("idle_mb", "MiB")),
    {
        ("--wrapped",): SERVED,
        ("--shared",): SERVED,
        ("--annotated",): SERVED,
        ("--released",): SERVED,
    },
)

# Requests that lose objects, and keep some in a cache.
LEAKS = beside_plain(
    "leaks",
    "request_leaks",
    ((), ("20000",)),
    (shown("resident_over_live", "x"),),
    {("--wrapped",): (times_plain("resident_over_live", "x", 1.5),)},
)

# Epochs in each of which one object survives.
LAST_ONES = beside_plain(
    "last_ones",
    "epoch_survivors",
    ((), ("20000",)),
    (shown("survivor_bytes", "bytes"), shown("reached", "of 1")),
    {
        ("--wrapped",): (
            times_plain("survivor_bytes", "bytes", 1.5),
            Metric("reached", "of 1", Bar.AT_LEAST, 1.0, higher_is_better=True),
        )
    },
)

# Objects that are freed after their epoch was closed: some of large batches, or all of requests, by
# the same thread or another one. The epochs have a parent, too.
OUTLIVED = (
    *beside_plain(
        "outlived_batches",
        "epoch_outlived",
        (("300", "20000"), ("40", "5000")),
        (shown("object_ns", "ns"), shown("resident_mb", "MiB"), shown("peak_mb", "MiB")),
        {
            flags: (
                times_plain("object_ns", "ns", 1.05),
                times_plain("resident_mb", "MiB", 1.1),
                times_plain("peak_mb", "MiB", 1.1),
            )
            for flags in (("--wrapped",), ("--wrapped", "--below"))
        },
    ),
    *(
        work
        for freed in ("late", "handed")
        for work in beside_plain(
            f"outlived_{freed}",
            "epoch_outlived",
            ((f"--{freed}", "40000", "100"), (f"--{freed}", "4000", "100")),
            (shown("object_ns", "ns"), shown("resident_mb", "MiB")),
            {
                flags: (
                    times_plain("object_ns", "ns", 1.05),
                    times_plain("resident_mb", "MiB", 1.1),
                )
                for flags in (("--wrapped",), ("--wrapped", "--below"))
            },
        )
    ),
)

# Requests of a thousand tenants, in epochs below theirs: freed within, freed later, the same with
# tenants that take turns, or large with objects that survive.
TENANTS = tuple(
    work
    for name, flags, quick in (
        ("tenants", (), "20000"),
        ("tenants_late", ("--late",), "20000"),
        ("tenants_turns", ("--late", "--turns"), "20000"),
        ("tenants_batches", ("--batches",), "20"),
    )
    for work in beside_plain(
        name,
        "epoch_tenants",
        ((*flags, "1000"), (*flags, "1000", quick)),
        (shown("request_us", "us"), shown("resident_mb", "MiB")),
        {
            mode: (times_plain("request_us", "us", 1.1), times_plain("resident_mb", "MiB", 1.1))
            for mode in (("--wrapped",), ("--below",))
        },
    )
)

# Sessions that are open at once, small and larger; the same where most objects end with a request.
SESSIONS = tuple(
    work
    for name, flags in (("sessions", ()), ("sessions_passing", ("--passing",)))
    for kib in ("8", "32")
    for work in beside_plain(
        f"{name}_{kib}",
        "epoch_sessions",
        ((*flags, kib, "3000000"), (*flags, kib, "300000")),
        (shown("object_ns", "ns"), shown("resident_over_live", "x")),
        {
            mode: (
                times_plain("object_ns", "ns", 1.05),
                times_plain("resident_over_live", "x", 1.1),
            )
            for mode in (("--wrapped",), ("--released",))
        },
    )
)

# Small requests of many labels, whose objects are freed within their epoch, or of which one is kept
# for 20 requests more.
LABELS = tuple(
    work
    for name, flags, sizes in (
        ("labels", (), (("50", "1000"), ("50", "100"))),
        ("labels_kept", ("--keeps",), (("50", "1000"), ("50", "100"))),
        ("labels_thousand", (), (("1000", "300"), ("1000", "30"))),
    )
    for work in beside_plain(
        name,
        "epoch_labels",
        ((*flags, *sizes[0]), (*flags, *sizes[1])),
        (shown("request_us", "us"), shown("resident_mb", "MiB")),
        {
            ("--wrapped",): (
                times_plain("request_us", "us", 1.1),
                times_plain("resident_mb", "MiB", 1.1),
            )
        },
    )
)

# The suite's patterns of servers, at their own pace beside the same without epochs, and as fast as
# they go beside peers.
PATTERNS = ("burst", "steady", "leak", "hotspot", "kernel")


def server(
    name: str, mode: str, metrics: tuple[Metric, ...], *options: str, seconds: int = 4
) -> Work:
    """With an epoch for each request (`tslab`), or as any malloc."""
    command = ("synthetic_bench", f"--allocator={mode}", *options)
    return Work(
        name, (*command, f"--duration_s={seconds}"), (*command, "--duration_s=1"), metrics,
        "servers", ours_alone=True,
    )  # fmt: skip


def paced(name: str) -> tuple[Work, Work]:
    keys = ("p50_ns", "p99_ns", "p999_ns")
    plain = server(
        f"paced_{name}_plain", "malloc", tuple(shown(key, "ns") for key in keys),
        f"--pattern={name}",
    )  # fmt: skip
    wrapped = server(
        f"paced_{name}_wrapped", "tslab", tuple(times_plain(key, "ns", 1.15) for key in keys),
        f"--pattern={name}",
    )  # fmt: skip
    return plain, replace(wrapped, plain=plain.name)


def saturated(name: str) -> Work:
    metrics = (rate("requests/s", Bar.WITHIN_5_PCT),)
    options = (f"--pattern={name}", "--rate_factor=max")
    work = server(f"saturated_{name}", "tslab", metrics, *options)
    return replace(work, ours_alone=False, peer_mode="--allocator=malloc")


PACED_OR_SATURATED = (
    *(one for name in PATTERNS for one in paced(name)),
    *(saturated(name) for name in PATTERNS if name != "leak"),
)

# What it costs that labels are watched whose objects outlive their epochs, beside the same with
# no watch. None of the objects do, one in 21,000, or one in 21,000 of epochs with their own memory.
WATCHED = tuple(
    work
    for name, own, loses in (
        ("loses_none", (), ()),
        ("loses_few", (), ("1000",)),
        ("own_loses_few", ("--own",), ("1000",)),
    )
    for work in beside_plain(
        name,
        "epoch_watched",
        ((*own, "12000000", *loses), (*own, "20000", *loses)),
        (shown("request_ns", "ns"),),
        {("--watched",): (times_plain("request_ns", "ns", 1.005),)},
    )
)

# The instructions of the core before there were epochs, and 1 %.
PAIR_WITH_EPOCHS = 36.0 * 1.01

EPOCHS = (
    ours(
        "epoch_costs",
        ("epoch_costs",),
        ("epoch_costs", "20000"),
        (
            shown("floor_ns", "ns"),
            shown("enter_leave_ns", "ns"),
            at_most("over_floor_ns", "ns", 5.0),
            at_most("large_over_floor_ns", "ns", 5.0),
            at_most("open_close_ns", "ns", 50.0),
            at_most("open_use_close_ns", "ns", 120.0),
        ),
    ),
    ours(
        "request_time",
        ("epoch_requests",),
        ("epoch_requests", "500", "20"),
        request_ways("ns", own=1.1),
    ),
    ours(
        "request_instructions",
        ("epoch_requests", "--instructions", "20000"),
        ("epoch_requests", "--instructions", "500"),
        request_ways("instructions", own=1.15),
    ),
    ours(
        "pair_instructions",
        ("pair_instructions",),
        ("pair_instructions", "200"),
        (at_most("pair_instructions", "instructions", PAIR_WITH_EPOCHS),),
    ),
    ours(
        "containers_time",
        ("epoch_containers",),
        ("epoch_containers", "100", "20"),
        container_ways("ns"),
    ),
    ours(
        "containers_instructions",
        ("epoch_containers", "--instructions"),
        ("epoch_containers", "--instructions", "100"),
        container_ways("instructions"),
    ),
    many_epochs(1),
    many_epochs(16),
    many_epochs(1000),
    many_epochs(100_000, (at_most("epoch_kib", "KiB", 6.0),)),
    ours(
        "epoch_churn",
        ("epoch_churn",),
        ("epoch_churn", "200", "20000"),
        (at_most("growth_pct", "%", 1.0),),
    ),
    ours(
        "epoch_churn_mixed",
        ("epoch_churn", "--mixed"),
        ("epoch_churn", "--mixed", "200", "20000"),
        (at_most("growth_pct", "%", 1.0),),
    ),
    ours(
        "epoch_close_drained",
        ("epoch_close_drained", "--helper"),
        ("epoch_close_drained", "--helper"),
        (at_most("close_ns", "ns", 1e6), at_most("back_ms", "ms", 10.0)),
    ),
    ours(
        "epoch_close_no_helper",
        ("epoch_close_drained",),
        ("epoch_close_drained",),
        (at_most("close_ns", "ns", 1e6), at_most("back_ms", "ms", 10.0)),
    ),
    request("request_freed", "epoch_free", "malloc", Bar.AT_OR_BELOW),
    request("request_released", "epoch_release", "monotonic", Bar.AT_OR_BELOW),
    request("request_released_2x", "epoch_release", "malloc", Bar.TWICE),
    request("request_released_malloc", "epoch_release", "malloc", Bar.TIMES_BEST, 0.75),
    lifetime_mix("lifetime_epochs", ("--epochs",), Bar.AT_MOST, 1.3),
    lifetime_mix("lifetime_plain", (), Bar.TWICE),
    lifetime_mix("lifetime_idle", ("--idle",), Bar.TWICE),
    *SURVIVORS,
    *SERVER,
    *LEAKS,
    *LAST_ONES,
    *OUTLIVED,
    *TENANTS,
    *LABELS,
    *SESSIONS,
    *PACED_OR_SATURATED,
    *WATCHED,
)


def unslowed(key: str, unit: str, higher_is_better: bool = False) -> Metric:
    return Metric(key, unit, Bar.WITHIN_1_PCT, higher_is_better=higher_is_better)


def observed(name: str, command: tuple[str, ...], quick: tuple[str, ...], *metrics: Metric) -> Work:
    """What being observed must not slow down. A run lasts long enough to be asked twice."""
    program = command[0]
    return Work(f"observed_{name}", command, (program, *quick), metrics, "observed")


def observed_mix(slots: int) -> Work:
    command = ("bench_random_mixed", "250000000", str(slots))
    rate = unslowed("rate", "M ops/s", higher_is_better=True)
    return observed(f"random_mixed_{slots}", command, ("100000000", str(slots)), rate)


def observed_request(name: str, mode: str) -> Work:
    command = ("request_objects", mode, "4000000")
    return observed(name, command, (mode, "2000000"), unslowed("request_ns", "ns"))


BURST = ("--allocator=tslab", "--pattern=burst", "--rate_factor=max")

OBSERVED = (
    observed_mix(256),
    observed_mix(8192),
    observed_request("request_freed", "epoch_free"),
    observed_request("request_released", "epoch_release"),
    observed(
        "burst",
        ("synthetic_bench", *BURST, "--duration_s=3"),
        (*BURST, "--duration_s=1"),
        unslowed("rate", "requests/s", higher_is_better=True),
        unslowed("p999_ns", "ns"),
    ),
    observed(
        "churn",
        ("churn_latency", "60000000"),
        ("20000000",),
        unslowed("malloc_p999_ns", "ns"),
        unslowed("free_p999_ns", "ns"),
    ),
)
