"""The command `tslab` on a process that runs, and on what it leaves when it is killed.

live.py TSLAB PRELOAD LEAKER FILLER
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from command import Command, end_input, first_line, process

# What may be the residual of the allocator's resident memory.
MOST_RESIDUAL = 0.02

KIB = 1024


def check_leaks(tslab: Command, pid: str) -> None:
    said = tslab.run("leaks", pid, "--after", "0", status=1)
    for part in ('"GET /upload"', "357 objects", "128 B   340", "256 B    17"):
        assert part in said, said
    assert said.count("GET /upload") == 1, said
    assert tslab.run("leaks", pid, "--after", "3600") != said


def pages_left(tslab: Command, pid: str) -> dict[str, Any]:
    """The leaks of label "GET /page", by state."""
    told = tslab.json("leaks", pid, "--after", "0", status=1)["leaks"]
    return {leak["state"]: leak for leak in told if leak["label"] == "GET /page"}


def check_last_ones(tslab: Command, leaker: str, places: str) -> None:
    """Of many epochs that each lost one object, label, class, age and stack are still known."""
    epochs = 20000 if places == "own" else 1000000  # with memory of its own each keeps 4 KiB
    begun = time.monotonic()
    # Without a bound some 600 samples stand for the objects, which is right within 4 %.
    settings = (f"TSLAB_PLACES={places}", "TSLAB_SAMPLE_BYTES=4K", "TSLAB_SAMPLE_RATE=0")
    with process("env", *settings, leaker, str(epochs)) as child:
        assert first_line(child) == "ready\n"
        time.sleep(1.5)  # younger objects of a shared epoch may be of requests in flight
        pages = pages_left(tslab, str(child.pid))
        end_input(child)
    lived_ms = (time.monotonic() - begun) * 1000
    states = {"closed"} if places == "own" else {"closed", "shared"}
    assert set(pages) == states, pages
    # Of a thread that is still there 512 KiB a class may not be told yet, nor 1,023 frees.
    untold, unfreed = (0, 0) if places == "own" else ((512 << 10) // 128, 1023)
    objects = sum(leak["objects"] for leak in pages.values())
    assert epochs - untold <= objects <= epochs + unfreed, pages
    closed = pages["closed"]
    assert closed["classes"] == [{"class_bytes": 128, "objects": closed["objects"]}], pages
    most = pages["closed" if places == "own" else "shared"]
    counted = {one["class_bytes"]: one["objects"] for one in most["classes"]}
    # Of sampled objects, which lie in cells, the samples name the class. What the program allocates
    # otherwise may be on its way.
    sampled = most["stacks"][0]["samples"]
    assert 0 <= most["objects"] - counted[128] <= 1.05 * sampled, pages
    assert sum(counted.values()) - counted[128] <= 2, pages
    assert 0.7 * epochs < most["outlived_objects"] <= epochs + unfreed, pages
    assert 0 <= most["last_for_ms"] <= most["for_ms"] <= lived_ms, (pages, lived_ms)
    stack = most["stacks"][0]
    calls = [call["function"] for call in stack["calls"]]
    assert (calls[:3], stack["class_bytes"]) == (["keep", "lose_one", "main"], 128), stack


def check_figures(tslab: Command, pid: str) -> None:
    assert "session" in tslab.run("epochs", pid)
    assert "leaker" in tslab.run("ps")
    assert tslab.run("stats", pid) != ""
    told = json.dumps(tslab.json("epochs", pid))
    assert "GET /upload" in told, told
    assert "session" in told, told


def check_why(tslab: Command, pid: str) -> dict[str, Any]:
    """Its parts add up to what the system says."""
    account: dict[str, Any] = tslab.json("why", pid)
    parts = {part["part"]: part["bytes"] for part in account["parts"]}
    resident = account["resident_bytes"]
    assert sum(parts.values()) == resident + account["not_resident_bytes"], account
    assert all(0 <= part <= sum(parts.values()) for part in parts.values()), account
    parts["not_resident"] = account["not_resident_bytes"]
    assert resident == own_mappings_bytes(tslab, pid), (resident, account)
    assert not account["not_told"], account
    return parts


def own_mappings_bytes(tslab: Command, pid: str) -> int:
    """Resident memory of the mappings that hold the allocator's region, and of its file."""
    process = tslab.json("stats", pid)["process"]
    region = range(process["region_at"], process["region_at"] + process["region_bytes"])
    resident = 0
    is_own = False
    for line in Path(f"/proc/{pid}/smaps").read_text(encoding="utf-8").splitlines():
        words = line.split()
        if not words[0].endswith(":"):
            name = " ".join(words[5:])
            is_own = int(words[0].split("-")[0], 16) in region or "/dev/shm/tslab." in name
        elif words[0] == "Rss:" and is_own:
            resident += int(words[1]) * KIB
    return resident


def check_shape(tslab: Command, filler: str, shape: str) -> None:
    """What the command works out from outside is what the library knows inside."""
    with process(filler, shape) as child:
        inside = json.loads(first_line(child))
        parts = check_why(tslab, str(child.pid))
        assert parts["residual"] <= MOST_RESIDUAL * inside["resident"], (shape, parts)
        outside = {
            "live": parts["live"] + parts["large"],
            "large": parts["large"],
            "records": parts["records"],
            "kept": parts["thread_caches"] + parts["shared_cache"] + parts["dirty"],
            "free": parts["free_in_slabs"] + parts["untold"] - parts["not_resident"],
        }
        inside["kept"] = inside["cached"] + inside["dirty"]
        inside["free"] -= inside["untouched"]
        for name, value in outside.items():
            off = abs(value - inside[name])
            assert off <= MOST_RESIDUAL * inside["resident"], (shape, name, outside, inside)
        end_input(child)


def check_doctor(tslab: Command, pid: str) -> None:
    said = tslab.run("doctor", pid, "--after", "0", status=1)
    assert said.startswith('leak: 1 epoch "GET /upload" closed up to '), said
    assert "nothing found" in tslab.run("doctor", pid)


def check_watch(tslab: Command, pid: str) -> None:
    lines = tslab.run("watch", pid, "-n", "2", "--interval", "0.1", "--json").splitlines()
    assert len(lines) == 2, lines
    assert json.loads(lines[1])["rss_bytes"] > 0, lines


def check_diff(tslab: Command, pid: str, folder: Path) -> None:
    look = folder / f"tslab-look-{pid}.json"
    look.write_text(tslab.streams("stats", pid, "--json")[0], encoding="utf-8")
    try:
        tslab.run("diff", str(look), str(look), "--fail-on", "regression")
    finally:
        look.unlink()


def check_run(tslab: Command, preload: str, leaker: str) -> None:
    """The program runs in the place of the command, on the allocator."""
    with process(tslab.path, "run", "--library", preload, "--", leaker) as child:
        assert first_line(child) == "ready\n"
        assert preload in Path(f"/proc/{child.pid}/maps").read_text(encoding="utf-8")
        assert '"session"' in tslab.run("epochs", str(child.pid))
        watch = subprocess.Popen(
            [tslab.path, "watch", str(child.pid), "--interval", "0.1"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert "RSS" in first_line(watch)
        end_input(child)
        assert "has ended" in watch.communicate(timeout=30)[1]
        assert (child.returncode, watch.returncode) == (0, 0)


def check_living(tslab: Command, preload: str, leaker: str) -> None:
    with process(leaker, preload=preload) as child:
        assert first_line(child) == "ready\n"
        pid = str(child.pid)
        check_leaks(tslab, pid)
        check_figures(tslab, pid)
        check_why(tslab, pid)
        check_doctor(tslab, pid)
        check_watch(tslab, pid)
        check_diff(tslab, pid, Path(leaker).parent)
        child.kill()
        child.wait()
        check_dead(tslab, pid)


def life(tslab: Command, pid: str) -> str | None:
    """What `ps` says of a process that has a file."""
    known = [row for row in tslab.json("ps")["processes"] if row["pid"] == int(pid)]
    assert len(known) <= 1, known
    return known[0]["life"] if known else None


@contextmanager
def after_exec(tslab: Command, preload: str, *program: str) -> Iterator[str]:
    """A process that had a file before it became another program, which is ready."""
    script = (
        "import os, sys; print('ready', flush=True); input(); os.execvp(sys.argv[1], sys.argv[1:])"
    )
    first = ("env", "TSLAB_STATS_DELAY_MS=0", sys.executable, "-c", script)
    with process(*first, *program, preload=preload) as child:
        assert first_line(child) == "ready\n"
        assert life(tslab, str(child.pid)) == "alive"
        assert child.stdin is not None
        child.stdin.write("go\n")
        child.stdin.flush()
        assert first_line(child) == "ready\n"
        yield str(child.pid)


def check_exec(tslab: Command, preload: str, leaker: str) -> None:
    """What a program told before exec is not taken for what the next one tells."""
    with after_exec(tslab, preload, leaker) as pid:
        assert life(tslab, pid) == "alive"
        check_leaks(tslab, pid)
        tslab.run("gc")
        assert life(tslab, pid) == "alive"
    tslab.run("gc")
    with after_exec(
        tslab, preload, "env", "-u", "LD_PRELOAD", "sh", "-c", "echo ready; read end"
    ) as pid:
        assert life(tslab, pid) == "stale"
        assert "does not use this file any more" in tslab.run("stats", pid)
        tslab.run("gc")
        assert life(tslab, pid) is None
        assert "does not run on tslab" in tslab.run("stats", pid, status=2)


def check_dead(tslab: Command, pid: str) -> None:
    assert pid in tslab.run("ps", "--all"), "what a killed process leaves is shown"
    assert "--smaps" in tslab.run("why", pid, status=2)
    assert "tslab stats" in tslab.run("watch", pid, status=2)
    tslab.run("gc", "--dry-run")
    assert pid in tslab.run("ps", "--all")
    tslab.run("gc")
    assert pid not in tslab.run("ps", "--all").split()


def why_absent(tslab: Command, *command: str, preload: str = "") -> str:
    """What the command says of a process that has no file."""
    with process(*command, "sh", "-c", "echo ready; read end", preload=preload) as child:
        assert first_line(child) == "ready\n"
        time.sleep(0.2)  # options for the young are over
        return tslab.run("stats", str(child.pid), status=2)


def check_limits(tslab: Command, preload: str) -> None:
    """The limit that refuses the file is named, and next to it there is a file."""
    python, keeps = sys.executable, "x = bytearray(8 << 20); print('ready', flush=True); input()"
    with process(python, "-c", keeps, preload=preload) as child:
        assert first_line(child) == "ready\n"
        size = tslab_file(child.pid).stat().st_size
    for flag, wanted in (("-f", size), ("-v", 16 * size)):
        # ulimit counts in 1,024 bytes.
        assert wanted % 1024 == 0
        for below in (0, 1):
            limited = f'ulimit {flag} {wanted // 1024 - below} && exec "$@"'
            command = ("bash", "-c", limited, "bash", python, "-c", keeps)
            with process(*command, preload=preload) as child:
                assert first_line(child) == "ready\n"
                said = tslab.run("stats", str(child.pid), status=2 * below)
                assert below == 0 or f"(ulimit {flag}) is" in said, said


def tslab_file(pid: int) -> Path:
    return next(Path("/dev/shm").glob(f"tslab.{pid}.*"))


def check_absent(tslab: Command, preload: str, filler: str) -> None:
    """A process without a file is told which cause it is, and with large blocks it has one."""
    assert "start it with `tslab run" in why_absent(tslab, "env")
    assert "holds little" in why_absent(tslab, "env", preload=preload)
    off = why_absent(tslab, "env", "TSLAB_STATS=0", preload=preload)
    assert "TSLAB_STATS switches" in off, off
    delayed = why_absent(tslab, "env", "TSLAB_STATS_DELAY_MS=3600000", preload=preload)
    assert "`stats_delay_ms` lets it wait for 60 min" in delayed, delayed
    check_limits(tslab, preload)
    missing = why_absent(tslab, "env", f"LD_PRELOAD={preload}.missing")
    assert "though its LD_PRELOAD names the library" in missing, missing
    with process("env", "TSLAB_STATS_DELAY_MS=3600000", filler, "large") as child:
        first_line(child)
        pid = str(child.pid)
        assert tslab.json("stats", pid)["totals"]["live_bytes"] >= 10 * (3 << 20)
        next(Path("/dev/shm").glob(f"tslab.{pid}.*")).unlink()
        assert "its file was deleted" in tslab.run("stats", pid, status=2)
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert "waits for its parent" in tslab.run("stats", pid, status=2)


def main(tslab_path: str, preload: str, leaker: str, filler: str) -> int:
    tslab = Command(tslab_path)
    check_living(tslab, preload, leaker)
    for places in ("own", "auto"):
        check_last_ones(tslab, leaker, places)
    check_run(tslab, preload, leaker)
    check_exec(tslab, preload, leaker)
    check_absent(tslab, preload, filler)
    for shape in ("small", "sparse", "large", "dirty", "epochs"):
        check_shape(tslab, filler, shape)
    said = tslab.run("stats", "999999999", status=2)
    assert "999999999" in said, said
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
