"""How long the command takes to read a process with many epochs.

snapshot.py TSLAB FILLER
"""

from __future__ import annotations

import sys
import time

from live import Command, first_line, process

ROUNDS = 25
MOST_MS = 50.0


def read_ms(tslab: Command, pid: int) -> float:
    """From the command's start to its end, and it does not show the epochs."""
    begin = time.perf_counter()
    tslab.run("stats", str(pid))
    return (time.perf_counter() - begin) * 1e3


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
