"""What the founding documents claim, as anchors beside our own rows. Nothing here was measured by
the programs of this repository."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Anchor:
    """A claim and the row of ours that measures the same thing; empty: that document has none."""

    figure: str
    unit: str
    row: str
    zns_slab: str = ""
    temporal_slab: str = ""
    glibc: str = ""
    hakmem: str = ""
    mimalloc: str = ""


ANCHORS = (
    Anchor("allocation p50", "ns", "churn_fixed p50_ns", "26", "30", "24"),
    Anchor("allocation p99", "ns", "churn_fixed p99_ns", "1,423", "76", "2,962"),
    Anchor("allocation p99.9", "ns", "churn_fixed p999_ns", "2,303", "166", "11,525"),
    Anchor("allocation p99.99", "ns", "churn_fixed p9999_ns", "", "1,542", "63,940"),
    Anchor("allocation p99.999", "ns", "churn_fixed p99999_ns", "", "19,764", "254,039"),
    Anchor("free p50", "ns", "benchmark_accurate free_batch_p50_ns", "24", "26"),
    Anchor("free p99", "ns", "benchmark_accurate free_p99_ns", "45", "84"),
    Anchor("free p99.9", "ns", "benchmark_accurate free_p999_ns", "184", "253"),
    Anchor("RSS growth over 1,000 churn cycles", "%", "churn_test growth_pct", "", "2.4"),
    Anchor("memory over the live bytes", "%", "benchmark_accurate overhead_pct", "", "36.6"),
    Anchor("p99 at 16 threads", "ns", "benchmark_threads t16_malloc_p99_ns", "", "19,900"),
    Anchor("epoch close", "ns", "epoch_close_drained close_ns", "", "160,000"),
    Anchor(
        "efficiency of size classes, mean", "%",
        "benchmark_accurate efficiency_mean_pct", "", "100 - 11.1",
    ),
    Anchor(
        "efficiency of size classes, least", "%",
        "benchmark_accurate efficiency_least_pct", "", ">= 75",
    ),
    Anchor(
        "random mixed, 256 slots", "M ops/s", "random_mixed_256 rate",
        glibc="86.7", hakmem="79.2", mimalloc="114.9",
    ),
    Anchor(
        "random mixed, 8,192 slots", "M ops/s", "random_mixed_8192 rate",
        glibc="57.1", hakmem="16.5", mimalloc="96.5",
    ),
)  # fmt: skip
