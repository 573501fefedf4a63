"""`tslab record`: what a process held when it held most, and every other dump, on live processes.

recording.py TSLAB PRELOAD PEAKER
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

MIB = 1 << 20
PEAK_MIB = 300
STAYS_MIB = 10

# How long anything may take on a machine that is busy.
MOST_S = 60


class Bench:
    """The command under test, and the program that it looks at."""

    def __init__(self, tslab: str, preload: str, peaker: str, place: Path) -> None:
        self.tslab = tslab
        self.preload = preload
        self.peaker = peaker
        self.place = place

    def streams(self, *arguments: str, status: int = 0) -> tuple[str, str]:
        done = subprocess.run(
            [self.tslab, *arguments], capture_output=True, text=True, check=False, timeout=MOST_S
        )
        said = done.stdout + done.stderr
        assert done.returncode == status, f"{arguments}: status {done.returncode}\n{said}"
        return done.stdout, done.stderr

    def run(self, *arguments: str) -> str:
        return self.streams(*arguments)[0]

    def errors(self, *arguments: str) -> str:
        return self.streams(*arguments, status=2)[1]

    def json(self, *arguments: str) -> Any:
        return json.loads(self.run(*arguments, "--json"))

    def record(self, *arguments: str) -> subprocess.Popen[str]:
        """A recording, which says so before it goes on."""
        recording = subprocess.Popen(
            [self.tslab, "record", "--json", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert recording.stderr is not None
        said = recording.stderr.readline()
        assert said.startswith("tslab: recording process "), said + recording.stderr.read()
        return recording

    @contextmanager
    def process(self, mib: int, ms: int, sample: str = "512K") -> Iterator[subprocess.Popen[str]]:
        environment = {"LD_PRELOAD": self.preload, "TSLAB_SAMPLE_BYTES": sample}
        child = subprocess.Popen(
            [self.peaker, str(mib), str(ms)],
            env={**os.environ, **environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert child.stdout is not None
        assert child.stdout.readline() == "peak\n"
        try:
            yield child
        finally:
            child.kill()
            child.communicate()


def report(recording: subprocess.Popen[str], status: int = 0) -> dict[str, Any]:
    """What a recording says at its end, as JSON behind what its program said."""
    said, errors = recording.communicate(timeout=MOST_S)
    assert recording.returncode == status, errors
    told: dict[str, Any] = json.loads(said[said.index("{") :])
    return told


def dumps(told: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {dump["dump"]: dump for dump in told["dumps"]}


def wait_for(what: Callable[[], bool]) -> None:
    end = time.monotonic() + MOST_S
    while not what():
        assert time.monotonic() < end
        time.sleep(0.02)


def check_peak(bench: Bench) -> None:
    """A program that peaks for a second: how much, by whom, and what had gone as it ended."""
    place = bench.place / "peak"
    recording = bench.record("-o", str(place), "--", bench.peaker, str(PEAK_MIB), "1000")
    assert recording.stdout is not None
    while recording.stdout.readline() != "over\n":
        assert recording.poll() is None
    told = report(recording)  # which ends its input
    found = dumps(told)
    wanted = (PEAK_MIB + STAYS_MIB) * MIB
    for name in ("held_bytes", "live_bytes"):
        assert abs(found["peak"][name] - wanted) <= 0.02 * wanted, found
    # What came after the thread's last report and went before its next is not in it.
    assert abs(told["peak_held_bytes"] - wanted) <= 0.05 * wanted, told
    assert found["exit"]["live_bytes"] <= 1.05 * STAYS_MIB * MIB, found
    assert (told["ended"], told["status"], told["dropped"]) == (True, "exit status: 0", 0), told
    check_site(bench, place)


def check_site(bench: Bench, place: Path) -> None:
    peak, last = str(place / "peak"), str(place / "exit")
    folded = bench.run("profile", peak, "--format", "folded", "-o", "-")
    by_stack = {line.rsplit(" ", 1)[0]: int(line.rsplit(" ", 1)[1]) for line in folded.splitlines()}
    built = sum(size for stack, size in by_stack.items() if "build_report" in stack)
    # An estimate from some 200 samples: a fifth is less than three standard deviations.
    assert abs(built - PEAK_MIB * MIB) <= 0.4 * PEAK_MIB * MIB, folded
    told = json.loads((place / "peak/profile.json").read_text())
    assert any("build_report" in sample["stack"] for sample in told["samples"]), told
    grown = bench.json("diff", last, peak)["differences"]
    sites = [one for one in grown if "site" in one["topic"] and one["regression"]]
    assert "build_report" in sites[0]["topic"]["site"], grown
    assert not any("read_settings" in one["topic"]["site"] for one in sites), sites
    unnamed = bench.streams("diff", last, str(place / "peak/statistics"))[1]
    assert "functions of one side have no names" in unnamed, unnamed


def check_signal_and_interval(bench: Bench) -> None:
    place = bench.place / "asked"
    with bench.process(20, 0) as child:
        recording = bench.record(str(child.pid), "-o", str(place), "--every", "0.3")
        wait_for((place / "at-2").exists)
        recording.send_signal(signal.SIGUSR1)
        wait_for((place / "signal-1").exists)
        before = bench.json("stats", str(place / "signal-1"))
        assert before["pid"] == child.pid, before
        assert "live objects" in bench.run("why", str(place / "signal-1"))
        assert bench.json("diff", str(place / "signal-1"), str(child.pid))["compared"] > 5
        check_doctor(bench, place / "signal-1", place / "at-1")
        recording.send_signal(signal.SIGTERM)
        told = report(recording)
        assert not told["ended"], told
        assert child.poll() is None
        again = bench.errors("record", str(child.pid), "-o", str(place))
        assert "no empty folder" in again, again
    kinds = {dump["why"] for dump in told["dumps"]}
    assert kinds == {"peak", "interval", "signal"}, told


def check_doctor(bench: Bench, now: Path, before: Path) -> None:
    """Two dumps tell a doctor as much as two looks at the process do."""
    told = bench.json("doctor", str(now), "--before", str(before))
    assert (told["findings"], told["not_checked"]) == ([], []), told
    moments = [json.loads((dump / "about.json").read_text()) for dump in (before, now)]
    # Between the copies, whenever the process last wrote to its file.
    assert told["over_ms"] == moments[1]["now_ms"] - moments[0]["now_ms"], (told, moments)
    assert {moment["helper"] for moment in moments} <= {"runs", "absent"}, moments


def check_asked_for_samples(bench: Bench) -> None:
    """A process that does not sample does while it is recorded, so that its peak has a profile."""
    place, untouched = bench.place / "sampled", bench.place / "untouched"
    with bench.process(20, 0, sample="0") as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "over\n"
        recording = bench.record(str(child.pid), "-o", str(place))
        assert recording.stderr is not None
        said = recording.stderr.readline()
        assert "samples its allocations until the recording ends" in said, said
        wait_for(lambda: grows(bench, child) > 0 and names_growth(bench, place / "peak"))
        recording.send_signal(signal.SIGTERM)
        report(recording)
        profile = json.loads((place / "peak/profile.json").read_text())
        assert any("build_report" in sample["stack"] for sample in profile["samples"]), profile
        wait_for(lambda: grows(bench, child) == 0)
        recording = bench.record(str(child.pid), "-o", str(untouched), "--no-samples")
        assert recording.stderr is not None
        assert "`tslab profile" in recording.stderr.readline()
        assert grows(bench, child) == 0
        recording.send_signal(signal.SIGTERM)
        report(recording)


def grows(bench: Bench, child: subprocess.Popen[str]) -> int:
    """How often a process samples once it has allocated more."""
    assert child.stdin is not None
    assert child.stdout is not None
    child.stdin.write("\n")
    child.stdin.flush()
    assert child.stdout.readline() == "peak\n"
    time.sleep(0.3)  # it is looked at ten times a second
    return int(bench.json("stats", str(child.pid))["process"]["sample_bytes"])


def names_growth(bench: Bench, dump: Path) -> bool:
    """A dump of the first moment may have a sample counted that is not written yet."""
    if int(bench.json("stats", str(dump))["process"]["samples_taken"]) == 0:
        return False
    samples = bench.json("profile", str(dump))["samples"]
    return any("build_report" in sample["stack"] for sample in samples)


def check_bound(bench: Bench) -> None:
    place = bench.place / "bound"
    most = 1 << 20
    with bench.process(20, 0) as child:
        recording = bench.record(str(child.pid), "-o", str(place), "--every", "0.1", "--most", "1M")
        wait_for(lambda: not (place / "at-1").exists() and (place / "at-3").exists())
        recording.send_signal(signal.SIGINT)
        told = report(recording)
    on_disk = sum(path.stat().st_blocks * 512 for path in place.rglob("*"))
    assert told["dropped"] > 0, told
    assert "peak" in dumps(told), told
    assert max(told["bytes"], on_disk) <= most, (told, on_disk)


def check_killed(bench: Bench) -> None:
    """What is left of a process that was killed is what it held."""
    place = bench.place / "killed"
    with bench.process(50, 600_000) as child:
        recording = bench.record(str(child.pid), "-o", str(place))
        wait_for((place / "peak").exists)
        child.kill()
        child.wait()
        told = report(recording)
        for left in Path("/dev/shm").glob(f"tslab.{child.pid}.*"):
            left.unlink()
    last = dumps(told)["exit"]
    wanted = (50 + STAYS_MIB) * MIB
    assert told["ended"], told
    assert abs(last["live_bytes"] - wanted) <= 0.02 * wanted, told
    assert (place / "exit/profile.json").exists()


def check_refusals(bench: Bench) -> None:
    place = bench.place / "refused"
    at = str(place)
    assert "there is no process" in bench.errors("record", "4194304", "-o", at)
    assert not place.exists()
    assert "cannot make" in bench.errors("record", "-o", str(place / "deep"), "--", "true")
    assert "it allocated next to nothing" in bench.errors("record", "-o", at, "--", "true")
    assert "no-such" in bench.errors("record", "-o", at, "--", "no-such-program")
    bench.errors("record", "-o", at)
    bench.errors("record", "1", "-o", at, "--", "true")


def main(tslab: str, preload: str, peaker: str) -> None:
    os.environ["TSLAB_LIBRARY"] = preload
    os.environ["TSLAB_SAMPLE_RATE"] = "0"  # sizes are estimates from all samples
    with tempfile.TemporaryDirectory() as place:
        bench = Bench(tslab, preload, peaker, Path(place))
        check_peak(bench)
        check_signal_and_interval(bench)
        check_asked_for_samples(bench)
        check_bound(bench)
        check_killed(bench)
        check_refusals(bench)


if __name__ == "__main__":
    main(*sys.argv[1:])
