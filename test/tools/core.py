"""`tslab core` on the dump of a program that aborts says what the program said of itself.

core.py TSLAB PRELOAD CRASHER

Where the system gives dumps to another program, gdb writes one of a process that waits.
"""

from __future__ import annotations

import json
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from live import Command, first_line, process

DAMAGED = 200
CUT = 10
# The program allocates a little after it asked: what it writes its answer with.
MOST_MORE = 8
SKIPPED = 77
MAGIC = b"tslab postmortem"


def first_truth(text: str) -> Any:
    return json.loads(text[text.index("{") :])


def dumped_by_system(crasher: str, preload: str, folder: Path) -> tuple[Path, Any] | None:
    def unlimited() -> None:
        resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))

    pattern = Path("/proc/sys/kernel/core_pattern").read_text(encoding="utf-8").strip()
    if "/" in pattern or pattern.startswith("|"):
        return None
    try:
        done = subprocess.run(
            [crasher],
            cwd=folder,
            env={**os.environ, "LD_PRELOAD": preload},
            stdout=subprocess.PIPE,
            preexec_fn=unlimited,
            text=True,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    cores = [path for path in folder.iterdir() if path.stat().st_size > 0]
    return (cores[0], first_truth(done.stdout)) if cores else None


def dumped_by_gdb(crasher: str, preload: str, folder: Path) -> tuple[Path, Any] | None:
    gcore = shutil.which("gcore")
    if gcore is None:
        return None
    with process(crasher, "wait", preload=preload) as child:
        text = first_line(child)
        assert child.stdout is not None
        while not text.rstrip().endswith("}}"):
            text += child.stdout.readline()
        core = folder / f"core.{child.pid}"
        words = [gcore, "-o", str(folder / "core"), str(child.pid)]
        subprocess.run(words, capture_output=True, check=False)
        child.kill()
    return (core, first_truth(text)) if core.exists() else None


def description(dump: bytes) -> int:
    """Where the library that served the process describes itself; another one may be loaded."""
    at = dump.index(MAGIC)
    while int.from_bytes(dump[at + 16 : at + 24], "little") == 0:
        at = dump.index(MAGIC, at + 1)
    return at


def check_figures(told: Any, truth: Any) -> None:
    more = told["totals"]["live_objects"] - truth["live_objects"]
    assert 0 <= more <= MOST_MORE, (told["totals"], truth["live_objects"])
    assert told["totals"]["live_bytes"] >= truth["live_bytes"]
    epochs = {str(epoch["epoch"]): epoch for epoch in told["epochs"]}
    for number, epoch in truth["epochs"].items():
        for field, value in epoch.items():
            assert epochs[number][field] == value, (epochs[number], epoch)
    for field in ("live_objects", "live_bytes"):
        for rows in (told["epochs"], told["classes"]):
            assert sum(row[field] for row in rows) == told["totals"][field]


def check_addresses(tslab: Command, core: str, truth: Any) -> None:
    def found(address: int) -> Any:
        return tslab.json("core", core, "--address", hex(address))["address"]

    live = int(truth["live"], 16)
    inside = found(live + 5)
    assert inside["block"] == {"address": truth["live"], "bytes": 112, "live": True}, inside
    assert (inside["label"], inside["state"], inside["offset"]) == ("small", "open", 5)
    assert inside["first_bytes"].startswith(b"still here".hex())
    assert (inside["before"]["address"], inside["before"]["live"]) == (truth["before"], True)
    assert (inside["after"]["address"], inside["after"]["live"]) == (truth["freed"], False)
    assert found(int(truth["freed"], 16))["block"]["live"] is False
    assert found(4096)["place"] == "outside"
    text = tslab.run("core", core, "--address", truth["live"])
    assert f"byte 0 of {truth['live']}, 112 bytes, live" in text, text


def code_of(tslab: Command, core: Path) -> int:
    words = [tslab.path, "core", str(core), "--address", "0x7f0000000000"]
    done = subprocess.run(words, capture_output=True, timeout=60, check=False)
    assert done.returncode in (0, 2), (done.returncode, done.stderr)
    return done.returncode


def check_damage(tslab: Command, core: Path) -> None:
    """Bytes are changed where the dump describes itself, and anywhere; or its end is missing."""
    chance, whole = random.Random(1), core.read_bytes()
    places = [(0, 4096), (description(whole), 2600), (0, len(whole) - 8)]
    failures = 0
    with core.open("r+b") as file:
        for _ in range(DAMAGED):
            damaged = [one_damage(chance, places) for _ in range(chance.randint(1, 4))]
            for at, value in damaged:
                os.pwrite(file.fileno(), value, at)
            failures += code_of(tslab, core) == 2
            for at, value in damaged:
                os.pwrite(file.fileno(), whole[at : at + len(value)], at)
        for _ in range(CUT):
            file.truncate(chance.randrange(len(whole) * 9 // 10))
            assert code_of(tslab, core) == 2
            file.seek(0)
            file.write(whole)
            file.flush()
    assert DAMAGED / 10 < failures < DAMAGED, failures
    print(f"{DAMAGED} damaged dumps: {failures} with an error")


def one_damage(chance: random.Random, places: list[tuple[int, int]]) -> tuple[int, bytes]:
    start, length = chance.choice(places)
    size = chance.choice((1, 4, 8))
    value = chance.choice((0, (1 << 8 * size) - 1, chance.randrange(1 << 8 * size)))
    return start + chance.randrange(length), value.to_bytes(size, "little")


def check_errors(tslab: Command, core: Path) -> None:
    def error(path: Path) -> str:
        return tslab.streams("core", str(path), status=2)[1]

    assert "it is not a core dump" in error(Path(__file__))
    assert "it is not a core dump" in error(Path(tslab.path))
    whole = core.read_bytes()
    other = core.with_name("other")
    other.write_bytes(whole[: len(whole) // 2])
    said = error(other)
    assert "cut short" in said
    assert "ulimit -c" in said
    at = description(whole)
    other.write_bytes(whole[: at + 24] + b"\x09" + whole[at + 25 :])
    assert "use the command of its own version" in error(other)
    other.write_bytes(whole.replace(MAGIC, b"x" * len(MAGIC)))
    assert "nothing in the dump says that the process used tslab" in error(other)


def main() -> int:
    tslab, preload, crasher = Command(sys.argv[1]), sys.argv[2], sys.argv[3]
    with tempfile.TemporaryDirectory() as folder:
        made = dumped_by_system(crasher, preload, Path(folder))
        made = made or dumped_by_gdb(crasher, preload, Path(folder))
        if made is None:
            print("skipped: no core dump here; set kernel.core_pattern to core, or install gdb")
            return SKIPPED
        core, truth = made
        check_figures(tslab.json("core", str(core)), truth)
        check_addresses(tslab, str(core), truth)
        check_errors(tslab, core)
        check_damage(tslab, core)
    return 0


if __name__ == "__main__":
    sys.exit(main())
