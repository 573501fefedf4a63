"""The tables by name, and what else their raw files keep of the programs."""

from collections.abc import Sequence
from pathlib import Path

from peers import Allocator, all_allocators, ours_observed
from suite import SERVERS, SERVERS_KEYS, SUITE, SUITE_KEYS
from work import CORE, EPOCHS, OBSERVED, Work

TABLES = {
    "core": CORE, "epochs": EPOCHS, "suite": SUITE, "servers": SERVERS, "observed": OBSERVED,
}  # fmt: skip
KERNEL_KEYS = (
    "wall_s", "user_s", "sys_s", "peak_kib", "minor_faults", "voluntary", "involuntary",
    "others_s", "steal_s",
)  # fmt: skip
EXTRA_KEYS: dict[str, tuple[str, ...]] = {
    "core": (
        "floor_ns", "floor_ratio", "malloc_mean_ns", "free_mean_ns", "malloc_max_ns", "free_max_ns",
        "pair_ns",
    ),
    "epochs": (
        "near_ns", "all_ns", "fresh_ns", "epoch_kib", "early_bytes", "late_bytes", "before_bytes",
        "full_bytes", "after_bytes", "live_bytes",
    ),
    "suite": SUITE_KEYS,
    "servers": SERVERS_KEYS,
    "observed": ("scrapes",),
}  # fmt: skip


def allocators_of(table: str, build: Path) -> list[Allocator]:
    """Every one that a table could compare, ours first."""
    return ours_observed(build) if table == "observed" else all_allocators(build)


def keys_of(table: str, works: Sequence[Work]) -> list[str]:
    keys = [metric.key for work in works for metric in work.metrics]
    return list(dict.fromkeys([*KERNEL_KEYS, *keys, *EXTRA_KEYS.get(table, ())]))
