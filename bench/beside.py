"""Ours beside each peer: one row for each program of the table `core` that measures a rate.

Of a program that runs in several ways the row is the one in which ours stands worst beside the best
peer, so that no choice is made in our favour. A peer of which several versions are measured stands
there once: without peers.TWINS.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from peers import OURS, TWINS
from record import commands_of, load_runs
from summary import Results

RATE = "rate"


@dataclass(frozen=True)
class Beside:
    """One work's rates, medians of all rounds."""

    work: str
    ours: float
    peers: dict[str, float]

    @property
    def ratio(self) -> float:
        """Above one: we are ahead of the best peer."""
        return self.ours / max(self.peers.values())


def beside_of(results: Results, work: str) -> Beside | None:
    """Nothing for a work without a rate, of ours or of all peers."""
    ours = results.median(work, OURS, RATE)
    names = sorted(name for name in results.peers() if name not in TWINS)
    rates = {name: results.median(work, name, RATE) for name in names}
    known = {name: rate for name, rate in rates.items() if rate is not None}
    return Beside(work, ours, known) if ours is not None and known else None


def worst_of_programs(results: Results, commands: dict[str, str]) -> list[Beside]:
    """In the order in which the programs are measured."""
    worst: dict[str, Beside] = {}
    for work, command in commands.items():
        row = beside_of(results, work)
        program = command.split()[0]
        if row is not None and (program not in worst or row.ratio < worst[program].ratio):
            worst[program] = row
    return list(worst.values())


def load_beside(folder: Path) -> Sequence[Beside]:
    path = folder / "core_runs.csv"
    if not path.exists():
        return []
    return worst_of_programs(Results(load_runs(path)), commands_of(path))
