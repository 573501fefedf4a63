"""The programs of a mimalloc-bench checkout that was built elsewhere, with its own arguments."""

import os
import struct
from collections.abc import Iterator
from pathlib import Path

from work import Bar, Metric, Work

PT_INTERP = 3
SECTION = "mimalloc-bench"
# How the programs that run for a fixed time say what they did.
SCORES = {
    "larsonN": ("s", r" time: ([0-9.]+)", False),
    "larsonN-sized": ("s", r" time: ([0-9.]+)", False),
    "rptestN": ("ops/s", r"\.\.\.([0-9]+) memory ops", True),
    "xmalloc-testN": ("s", r"^rtime: ([0-9.]+)", False),
    "glibc-thread": ("iterations", r"^([0-9.]+)", True),
}


class ExternalError(Exception):
    """A folder that is no mimalloc-bench checkout with built programs."""


def command_lines(processors: int) -> dict[str, str]:
    """As its bench.sh starts them."""
    count, twice = processors, 2 * processors
    return {
        "cfrac": "cfrac 17545186520507317056371138836327483792789528",
        "espresso": "espresso ../../bench/espresso/largest.espresso",
        "barnes": "barnes",
        "larsonN": f"larson 5 8 1000 5000 100 4141 {count}",
        "larsonN-sized": f"larson-sized 5 8 1000 5000 100 4141 {count}",
        "mstressN": f"mstress {count} 50 25",
        "rptestN": f"rptest {count} 0 1 2 500 1000 100 8 16000",
        "alloc-test1": "alloc-test 1",
        "alloc-testN": f"alloc-test {min(count, 16)}",
        "sh6benchN": f"sh6bench {twice}",
        "sh8benchN": f"sh8bench {twice}",
        "xmalloc-testN": f"xmalloc-test -w {count} -t 5 -s 64",
        "cache-scratch1": f"cache-scratch 1 1000 1 2000000 {count}",
        "cache-scratchN": f"cache-scratch {count} 1000 1 2000000 {count}",
        "cache-thrash1": f"cache-thrash 1 1000 1 2000000 {count}",
        "cache-thrashN": f"cache-thrash {count} 1000 1 2000000 {count}",
        "glibc-simple": "glibc-simple",
        "glibc-thread": f"glibc-thread {count}",
        "malloc-large": "malloc-large",
        "mleak10": "mleak 5",
        "mleak100": "mleak 50",
    }


def is_dynamic(program: Path) -> bool:
    """Whether a 64-bit program asks for a loader: only then LD_PRELOAD reaches it."""
    data = program.read_bytes()
    if data[:5] != b"\x7fELF\x02":
        return False
    (start,) = struct.unpack_from("<Q", data, 32)
    size, count = struct.unpack_from("<HH", data, 54)
    kinds = (struct.unpack_from("<I", data, start + size * index)[0] for index in range(count))
    return PT_INTERP in kinds


def metrics_of(name: str) -> tuple[Metric, ...]:
    peak = Metric("peak_kib", "KiB", Bar.SHOWN)
    if name not in SCORES:
        return (Metric("wall_s", "s", Bar.SHOWN), peak)
    unit, _, higher_is_better = SCORES[name]
    return (Metric("score", unit, Bar.SHOWN, higher_is_better=higher_is_better), peak)


def works_in(place: Path) -> Iterator[Work]:
    for name, line in command_lines(os.cpu_count() or 1).items():
        program, *arguments = line.split()
        path = place / program
        if not os.access(path, os.X_OK) or not path.is_file():
            continue
        if not is_dynamic(path):
            raise ExternalError(f"{path} is no dynamic program: no allocator can be preloaded")
        command = (str(path), *arguments)
        source = place.parent.parent / "bench" / "barnes" / "input" if name == "barnes" else None
        score = SCORES[name][1] if name in SCORES else ""
        yield Work(
            name, command, command, metrics_of(name), SECTION,
            system=True, place=place, input=source, score=score,
        )  # fmt: skip


def works_of(folder: Path) -> list[Work]:
    place = (folder / "out" / "bench").resolve()
    if not (folder / "bench.sh").is_file() or not place.is_dir():
        raise ExternalError(
            f"{folder} is no built mimalloc-bench checkout: it lacks bench.sh or out/bench"
            " (its build-bench-env.sh makes that)"
        )
    works = list(works_in(place))
    if not works:
        raise ExternalError(f"{place} has none of the programs that are known here")
    return works
