"""The C reader and the command say the same of a process that is stopped.

reader.py TSLAB PRELOAD HOLDER READER
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

from command import Command, first_line, process, stop

# A text that was there for the whole time has the sums of all epochs that bear it.
FIGURES = ("live_objects", "live_bytes", "own_bytes")


def read(reader: str, target: str) -> Any:
    done = subprocess.run([reader, target], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def refuse(reader: str, target: str) -> str:
    done = subprocess.run([reader, target], capture_output=True, text=True, check=False)
    assert done.returncode == 1, done
    return done.stderr


def flat(epoch: Any) -> dict[str, int]:
    live = {f"live_{name}": epoch["live"][name] for name in ("objects", "bytes")}
    return live | {name: epoch[name] for name in ("epoch", "id", "held_bytes", "own_bytes")}


def by_label(epochs: list[Any]) -> dict[str, dict[str, int]]:
    sums: dict[str, dict[str, int]] = {}
    for epoch in epochs:
        known = sums.setdefault(epoch["label"], dict.fromkeys(FIGURES, 0))
        for name in FIGURES:
            known[name] += flat(epoch)[name]
    return sums


def check_same(tslab: Command, reader: str, pid: str) -> None:
    stats, epochs = tslab.json("stats", pid), tslab.json("epochs", pid, "--all")["epochs"]
    ours = read(reader, pid)
    figures = {name: ours["totals"][name] for name in stats["totals"]}
    assert figures == stats["totals"], (figures, stats["totals"])
    assert ours["allocations"] == stats["allocations"], (ours["allocations"], stats["allocations"])
    keys = ("epoch", "id", "held_bytes", *FIGURES)
    shown = [{name: epoch[name] for name in keys} for epoch in ours["epochs"]]
    assert shown == sorted(map(flat, epochs), key=lambda epoch: epoch["epoch"]), (shown, epochs)
    classes = [
        {name: of[name] for name in theirs}
        for of, theirs in zip(ours["classes"], stats["classes"], strict=True)
    ]
    assert classes == stats["classes"], (classes, stats["classes"])
    sums = by_label(epochs)
    for label in ours["labels"]:
        expected = sums.get(label["label"], dict.fromkeys(FIGURES, 0))
        assert {name: label[name] for name in FIGURES} == expected, (label, expected)
    assert sums.keys() <= {label["label"] for label in ours["labels"]}, sums


def check(tslab: Command, reader: str, *command: str, preload: str = "") -> None:
    with process(*command, preload=preload) as child:
        assert first_line(child)
        stop(child.pid)
        check_same(tslab, reader, str(child.pid))


def main(tslab: str, preload: str, holder: str, reader: str) -> int:
    check(Command(tslab), reader, holder)
    script = "import json; rows = [bytes(999) for n in range(10**5)]; print(1, flush=True); input()"
    check(
        Command(tslab),
        reader,
        "env",
        "PYTHONMALLOC=malloc",
        sys.executable,
        "-c",
        script,
        preload=preload,
    )
    assert "no such process" in refuse(reader, "4194305")
    assert "no such statistics file" in refuse(reader, str(os.getpid()))
    assert "not a statistics file" in refuse(reader, sys.executable)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
