"""`tslab core` on the dump of a program that aborts says what the program said of itself.

core.py TSLAB PRELOAD CRASHER SECURE_CRASHER

SECURE_CRASHER has the hardened build of the allocator in it.

Where the system gives dumps to another program, gdb writes one of a process that waits.
"""

from __future__ import annotations

import json
import os
import random
import resource
import shutil
import struct
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from command import Command, first_line, process

DAMAGED = 200
CUT = 10
# The program allocates a little after it asked: what it writes its answer with.
MOST_MORE = 8
# Some 2,000 samples stand for what lives: an error of 15 % would come once in 10^9 times.
MOST_OFF = 0.15
SKIPPED = 77
Settings = dict[str, str]
SAMPLED = {"TSLAB_SAMPLE_BYTES": "4K", "TSLAB_SAMPLE_RATE": "0"}
MAGIC = b"tslab postmortem"
WAITING = (sys.executable, "-c", "x = bytes(9 << 20); print('ready', flush=True); input()")


def first_truth(text: str) -> Any:
    return json.loads(text[text.index("{") :])


def dumped_by_system(
    crasher: str, preload: str, folder: Path, settings: Settings
) -> tuple[Path, Any] | None:
    def unlimited() -> None:
        resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))

    pattern = Path("/proc/sys/kernel/core_pattern").read_text(encoding="utf-8").strip()
    if "/" in pattern or pattern.startswith("|"):
        return None
    try:
        done = subprocess.run(
            [crasher],
            cwd=folder,
            env={**os.environ, **settings, "LD_PRELOAD": preload},
            stdout=subprocess.PIPE,
            preexec_fn=unlimited,
            text=True,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    cores = [path for path in folder.iterdir() if path.stat().st_size > 0]
    return (cores[0], first_truth(done.stdout)) if cores else None


def dumped_by_gdb(
    crasher: str, preload: str, folder: Path, settings: Settings
) -> tuple[Path, Any] | None:
    gcore = shutil.which("gcore")
    if gcore is None:
        return None
    given = [f"{name}={value}" for name, value in settings.items()]
    with process("env", *given, crasher, "wait", preload=preload) as child:
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
    assert epochs["0"]["label"] == "default", epochs["0"]
    for epoch in told["epochs"]:
        assert epoch["held_bytes"] >= epoch["live_bytes"], epoch
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


def check_sites(tslab: Command, core: Path, truth: Any) -> None:
    """Who allocated what lives: of the file that the process left, or of a copy."""
    told = tslab.json("core", str(core))
    estimate = sum(site["estimated_objects"] for site in told["sites"])
    assert abs(estimate - truth["live_objects"]) < MOST_OFF * truth["live_objects"], told["sites"]
    epochs = {site["label"] for site in told["sites"]}
    assert {"GET /upload", "batch"} <= epochs, epochs
    first = told["sites"][0]
    functions = [call["function"] for call in first["calls"]]
    assert functions[:3] == ["keep", "fill", "main"], functions
    assert first["calls"][0]["file"].endswith("crasher.c"), first["calls"]
    large = ("core", str(core), "--address", truth["large"])
    calls = tslab.json(*large)["address"]["calls"]
    assert [call["function"] for call in calls][:2] == ["keep", "fill"], calls
    text = tslab.run(*large)
    assert "allocated by keep  crasher.c:" in text, text
    assert "sites, of samples of a byte in 4.0 KiB" in text, text
    check_statistics(tslab, core, told["pid"])


def newest_file(pid: int) -> Path:
    """Earlier processes of the same number may have left theirs."""
    return max(Path("/dev/shm").glob(f"tslab.{pid}.*"), key=lambda path: path.stat().st_mtime)


def check_statistics(tslab: Command, core: Path, pid: int) -> None:
    left = newest_file(pid)
    copy = core.with_name("statistics")
    shutil.copyfile(left, copy)
    left.unlink()
    said, note = tslab.streams("core", str(core))
    assert "sites" not in said, said
    assert "who allocated is not known" in note, note
    assert "--stats" in note, note
    assert tslab.json("core", str(core), "--stats", str(copy))["sites"]
    check_partial(tslab, core, copy)
    with process("env", "TSLAB_STATS_DELAY_MS=0", *WAITING, preload=sys.argv[2]) as other:
        assert first_line(other) == "ready\n"
        path = str(newest_file(other.pid))
        said = tslab.run("core", str(core), "--stats", path, status=2)
        assert "is of another process" in said, said


def check_partial(tslab: Command, core: Path, copy: Path) -> None:
    """All was sampled from the beginning on; then the copy says that it was later.

    The row of the process is the first in the file that may hold these numbers.
    """
    told = copy.read_bytes()
    ever = struct.pack("<4Q", 4096, 0, 0, 4096)  # from `sample_bytes` to `weight_bytes`
    assert ever in told
    for since_ms, is_partial in ((0, False), (1, True)):
        copy.write_bytes(told.replace(ever, struct.pack("<4Q", 4096, 0, since_ms, 4096), 1))
        note = tslab.streams("core", str(core), "--stats", str(copy))[1]
        assert ("there are samples of a part at most" in note) == is_partial, note


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


def overlapping(whole: bytes) -> bytes:
    """A dump whose second piece of memory is where the first one is (System V ABI, chapter 5)."""
    start, count = int.from_bytes(whole[32:40], "little"), int.from_bytes(whole[56:58], "little")
    headers = [start + 56 * number for number in range(count)]
    loads = [
        at for at in headers if whole[at : at + 4] == b"\1\0\0\0" and any(whole[at + 32 : at + 40])
    ]
    place = whole[loads[0] + 8 : loads[0] + 16]
    return whole[: loads[1] + 8] + place + whole[loads[1] + 16 :]


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
    other.write_bytes(overlapping(whole))
    assert "overlap" in error(other)
    other.write_bytes(whole.replace(MAGIC, b"x" * len(MAGIC)))
    assert "nothing in the dump says that the process used tslab" in error(other)


def check_secure(tslab: Command, crasher: str, folder: Path, made: Any) -> None:
    """What waits in quarantine was freed."""
    found = made(crasher, "", folder, {})
    assert found is not None
    core, truth = found
    told = tslab.json("core", str(core))
    check_figures(told, truth)
    for address, lives in ((truth["live"], True), (truth["freed"], False)):
        block = tslab.json("core", str(core), "--address", address)["address"]["block"]
        assert (block["address"], block["live"]) == (address, lives), block


def check_dump(tslab: Command, crasher: str, preload: str, made: Any) -> bool:
    """False when no dump can be had in this way. A sampled block has no neighbours."""
    with tempfile.TemporaryDirectory() as plain, tempfile.TemporaryDirectory() as sampled:
        found = made(crasher, preload, Path(plain), {})
        if found is None:
            return False
        core, truth = found
        check_figures(tslab.json("core", str(core)), truth)
        check_addresses(tslab, str(core), truth)
        core, truth = made(crasher, preload, Path(sampled), SAMPLED)
        check_figures(tslab.json("core", str(core)), truth)
        check_sites(tslab, core, truth)
    return True


def main() -> int:
    tslab, preload, crasher, secure = Command(sys.argv[1]), *sys.argv[2:]
    ways = [
        made
        for made in (dumped_by_system, dumped_by_gdb)
        if check_dump(tslab, crasher, preload, made)
    ]
    if not ways:
        print("skipped: no core dump here; set kernel.core_pattern to core, or install gdb")
        return SKIPPED
    print("dumps are", " and ".join(made.__name__ for made in ways))
    with tempfile.TemporaryDirectory() as folder:
        found = ways[0](crasher, preload, Path(folder), {})
        assert found is not None
        core = found[0]
        check_errors(tslab, core)
        check_damage(tslab, core)
    with tempfile.TemporaryDirectory() as folder:
        check_secure(tslab, secure, Path(folder), ways[0])
    return 0


if __name__ == "__main__":
    sys.exit(main())
