"""How long the command takes to read a process with many epochs.

snapshot.py TSLAB FILLER
"""

from __future__ import annotations

import resource
import sys

from command import Command, first_line, process

ROUNDS = 25
MOST_MS = 15.0


def processor_ms() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (children.ru_utime + children.ru_stime) * 1e3


def read_ms(tslab: Command, pid: int) -> float:
    """What the command takes of a processor, as others may want one too. It shows no epochs."""
    before = processor_ms()
    tslab.run("stats", str(pid))
    return processor_ms() - before


def main(tslab_path: str, filler: str) -> int:
    tslab = Command(tslab_path)
    with process(filler, "many_epochs") as many, process(filler, "large") as few:
        first_line(many)
        first_line(few)
        epochs = tslab.json("stats", str(many.pid))["totals"]["epochs_open"]
        assert epochs == 10_000, epochs
        rounds = [(read_ms(tslab, many.pid), read_ms(tslab, few.pid)) for _ in range(ROUNDS)]
        many_ms, few_ms = (min(one) for one in zip(*rounds, strict=True))
        print(f"{epochs} epochs: {many_ms:.2f} ms, none: {few_ms:.2f} ms, the least of {ROUNDS}")
        assert many_ms - few_ms < MOST_MS
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
