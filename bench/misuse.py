"""Counts which mistakes with memory an allocator catches: `run misuse DIR` builds each C and C++
program of a folder, each of which makes one mistake, and runs it under our default build, our
secure build and the peers that are there.

The rule is that of the public harness whose programs are of this kind (mimalloc-bench, folder
bench/security): a program that says NOT_CAUGHT got away with it, whatever it does afterwards; one
that ends without saying so was caught; one that does neither in time is counted apart. C programs
that name ALLOCATION_SIZE, or lie beside a header that does, are built for 8 bytes, 4 KiB and
256 KiB. Nothing is fetched.
"""

import csv
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from peers import Allocator

SAID = b"NOT_CAUGHT"
SIZES = {"small": "8", "medium": "4096", "large": "256*1024"}
SIZE_NAME = "ALLOCATION_SIZE"
ONLY_SIZE = "4096"
LIMIT_S = 10.0
FLAGS = ("-O3", "-DNDEBUG", "-w")
# The mistake must reach the allocator as it was written.
C_FLAGS = (
    "-Wno-free-nonheap-object", "-fno-inline", "-fno-builtin-inline",
    "-fno-inline-small-functions", "-fno-ipa-pure-const",
)  # fmt: skip
CXX_FLAGS = ("-std=c++17", "-fsized-deallocation", f"-D{SIZE_NAME}={ONLY_SIZE}")
CAUGHT, MISSED, LATE, TIMEOUT = "caught", "missed", "too late", "timeout"


class MisuseError(Exception):
    """A folder without programs, or a machine without a compiler."""


@dataclass(frozen=True)
class Variant:
    """A program to build."""

    name: str
    command: tuple[str, ...]


def compiler(name: str) -> str:
    path = shutil.which(name)
    if path is None:
        raise MisuseError(f"{name} is missing: install a C and a C++ compiler")
    return path


def names_size(source: Path) -> bool:
    """Whether the program, or a header beside it, asks for a size."""
    texts = (path.read_text(errors="replace") for path in (source, *source.parent.glob("*.h")))
    return any(SIZE_NAME in text for text in texts)


def variants_of(source: Path) -> Iterator[Variant]:
    if source.suffix != ".c":
        yield Variant(source.stem, (compiler("c++"), *FLAGS, *CXX_FLAGS, str(source)))
        return
    command = (compiler("cc"), *FLAGS, *C_FLAGS)
    if not names_size(source):
        yield Variant(source.stem, (*command, str(source)))
        return
    for size, text in SIZES.items():
        yield Variant(f"{source.stem}_{size}", (*command, f"-D{SIZE_NAME}={text}", str(source)))


def sources_of(folder: Path) -> list[Path]:
    sources = [path for path in sorted(folder.iterdir()) if path.suffix in {".c", ".cc", ".cpp"}]
    if not sources:
        raise MisuseError(f"{folder} has no C or C++ program")
    return sources


def build_all(folder: Path, place: Path) -> tuple[list[Path], list[str]]:
    """The programs, and the names of those that the compiler refused."""
    programs, refused = [], []
    for source in sources_of(folder):
        for variant in variants_of(source):
            program = place / variant.name
            done = subprocess.run(
                [*variant.command, "-o", str(program)], capture_output=True, check=False
            )
            if done.returncode == 0:
                programs.append(program)
            else:
                refused.append(variant.name)
    return programs, refused


def outcome(program: Path, allocator: Allocator, limit_s: float = LIMIT_S) -> str:
    environment = dict(os.environ, **dict(allocator.environment))
    if allocator.library is not None:
        environment["LD_PRELOAD"] = str(allocator.library)
    try:
        done = subprocess.run(
            [program], env=environment, capture_output=True, timeout=limit_s, check=False
        )
    except subprocess.TimeoutExpired as ended:
        return LATE if SAID in (ended.stdout or b"") else TIMEOUT
    if SAID not in done.stdout:
        return CAUGHT
    return LATE if done.returncode < 0 else MISSED


Outcomes = dict[str, dict[str, str]]  # by program, then by allocator


def run_all(programs: Sequence[Path], allocators: Sequence[Allocator]) -> Outcomes:
    return {
        program.name: {one.name: outcome(program, one) for one in allocators}
        for program in programs
    }


def counts_of(outcomes: Outcomes) -> dict[str, int]:
    counts: dict[str, int] = {}
    for row in outcomes.values():
        for name, what in row.items():
            counts[name] = counts.get(name, 0) + (what == CAUGHT)
    return counts


def write_table(path: Path, outcomes: Outcomes, allocators: Sequence[Allocator]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["program", *(one.name for one in allocators)])
        writer.writerows([name, *row.values()] for name, row in outcomes.items())


def measure_folder(
    folder: Path, allocators: Sequence[Allocator], table: Path
) -> tuple[dict[str, int], int, list[str]]:
    """What each allocator caught of how many programs, and which were not built."""
    with tempfile.TemporaryDirectory() as place:
        programs, refused = build_all(folder, Path(place))
        outcomes = run_all(programs, allocators)
    table.parent.mkdir(parents=True, exist_ok=True)
    write_table(table, outcomes, allocators)
    return counts_of(outcomes), len(programs), refused
