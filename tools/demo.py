"""Three looks at tslab: a Redis server under load, memory where lifetimes mix, a leak.

Everything stays on the loopback interface; the servers keep nothing on disk and end with the demo.
The second look draws what a program holds resident over time, with and without epochs.
"""

from __future__ import annotations

import csv
import io
import os
import re
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

ROUNDS = int(os.environ.get("DEMO_ROUNDS", "3"))
REQUESTS = 200_000
COMMANDS = ("set", "get", "lpush", "lpop")
LOAD = ("-n", str(REQUESTS), "-r", "200000", "-d", "128", "-P", "16", "-c", "16")
START_SECONDS = 10.0
LOAD_SECONDS = 120.0
BUILD = Path(__file__).resolve().parent.parent / "build"
LIBRARY = BUILD / "lib/libtslab-preload.so"
MIX = BUILD / "bin/lifetime_mix"
MIX_BURSTS = 5
MIX_TROUGH_MS = 1500
MIX_SECONDS = 60.0
LEAKER = BUILD / "bin/synthetic_bench"
LEAK_SECONDS = 5
COMMAND = BUILD / "cargo/release/tslab"
COMMAND_SECONDS = 30.0
CHART_COLUMNS = 64
CHART_ROWS = 5
EIGHTHS = " ▁▂▃▄▅▆▇█"
SHADE = "░"
MIB = 1 << 20


@dataclass
class Arm:
    """One allocator and what the servers that ran on it did. No `preload`: as Debian ships it."""

    name: str
    preload: str
    rates: list[dict[str, float]] = field(default_factory=list)
    resident_kib: list[int] = field(default_factory=list)
    peak_kib: list[int] = field(default_factory=list)

    def rate(self, command: str) -> float:
        return statistics.median(rates[command] for rates in self.rates)


def step(text: str) -> None:
    """A line of progress, before what takes its time."""
    sys.stdout.flush()
    print(f"  .. {text}", file=sys.stderr)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def wait_until_ready(server: subprocess.Popen[bytes], port: int) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if server.poll() is not None:
            break
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=1) as connection:
                connection.sendall(b"PING\r\n")
                if connection.recv(16).startswith(b"+PONG"):
                    return
        except OSError:
            time.sleep(0.02)
    raise RuntimeError(f"redis-server did not answer on port {port}; its status is {server.poll()}")


@contextmanager
def redis_server(preload: str) -> Iterator[tuple[int, int]]:
    """A server's process id and port; the server and its folder are gone afterwards."""
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="tslab-demo-") as folder:
        command = ["redis-server", "--bind", "127.0.0.1", "--port", str(port), "--dir", folder]
        command += ["--save", "", "--appendonly", "no", "--daemonize", "no"]
        environment = {**os.environ, "LD_PRELOAD": preload}
        server = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
        try:
            wait_until_ready(server, port)
            yield server.pid, port
        finally:
            server.terminate()
            server.wait(timeout=START_SECONDS)


def memory_kib(pid: int, name: str) -> int:
    match = re.search(rf"^{name}:\s+(\d+) kB$", Path(f"/proc/{pid}/status").read_text(), re.M)
    if match is None:
        raise RuntimeError(f"the kernel does not tell {name}")
    return int(match[1])


def mapped(pid: int, library: str) -> bool:
    return library in Path(f"/proc/{pid}/maps").read_text()


def load(port: int) -> dict[str, float]:
    """Requests a second of each command."""
    command = ["redis-benchmark", "-h", "127.0.0.1", "-p", str(port), "-t", ",".join(COMMANDS)]
    done = subprocess.run(
        [*command, *LOAD, "--csv"], check=True, capture_output=True, text=True, timeout=LOAD_SECONDS
    )
    rows = csv.DictReader(io.StringIO(done.stdout))
    rates = {row["test"].split(" ")[0].lower(): float(row["rps"]) for row in rows}
    return {command: rates[command] for command in COMMANDS}


def measure(arm: Arm) -> None:
    with redis_server(arm.preload) as (pid, port):
        if arm.preload and not mapped(pid, arm.preload):
            raise RuntimeError(f"the server runs without {arm.preload}")
        arm.rates.append(load(port))
        arm.resident_kib.append(memory_kib(pid, "VmRSS"))
        arm.peak_kib.append(memory_kib(pid, "VmHWM"))


def arms() -> list[Arm]:
    """Debian's Redis brings jemalloc along; preloading the C library puts its malloc in front."""
    return [Arm("tslab", str(LIBRARY)), Arm("glibc", "libc.so.6"), Arm("as shipped", "")]


def table(measured: list[Arm]) -> str:
    header = ("", *(f"{command} k/s" for command in COMMANDS), "RSS MiB", "peak MiB")
    rows = [header]
    for arm in measured:
        rates = (f"{arm.rate(command) / 1000:.0f}" for command in COMMANDS)
        resident = f"{statistics.median(arm.resident_kib) / 1024:.1f}"
        peak = f"{statistics.median(arm.peak_kib) / 1024:.1f}"
        rows.append((arm.name, *rates, resident, peak))
    lines = (f"  {row[0]:<12}" + "".join(f"{cell:>12}" for cell in row[1:]) for row in rows)
    return "\n".join(lines)


def show_redis() -> None:
    measured = arms()
    print(f"Redis, {REQUESTS} requests a command, {ROUNDS} servers an allocator, medians:")
    for number in range(1, ROUNDS + 1):
        for arm in measured:
            step(f"server {number} of {ROUNDS} on {arm.name}")
            measure(arm)
    print(table(measured))


@dataclass(frozen=True)
class Mix:
    """One way to run the program of mixed lifetimes."""

    title: str
    preload: str
    flags: tuple[str, ...] = ()


@dataclass(frozen=True)
class Sample:
    """Resident and live memory at one moment of a program's life."""

    ms: int
    resident_mib: float
    live_mib: float


@dataclass(frozen=True)
class MixRun:
    """What a program of mixed lifetimes did, and what it held when it ended."""

    mix: Mix
    samples: list[Sample]
    end: Sample


def mixes() -> list[Mix]:
    epochs = "tslab, and each request in an epoch of its own"
    return [
        Mix("glibc", "libc.so.6"),
        Mix("tslab", str(LIBRARY)),
        Mix(epochs, str(LIBRARY), ("--epochs",)),
    ]


def start_mix(mix: Mix, curve: Path) -> subprocess.Popen[str]:
    command = [str(MIX), *mix.flags, "--idle", "--curve", str(curve)]
    command += [str(MIX_BURSTS), str(MIX_TROUGH_MS)]
    environment = {**os.environ, "LD_PRELOAD": mix.preload}
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)


def samples_of(curve: Path) -> list[Sample]:
    with curve.open(newline="") as file:
        return [
            Sample(int(row["ms"]), int(row["rss_bytes"]) / MIB, int(row["live_bytes"]) / MIB)
            for row in csv.DictReader(file)
        ]


def finish_mix(mix: Mix, program: subprocess.Popen[str], curve: Path) -> MixRun:
    """The end is what the program measured exactly, not a sample."""
    output, _ = program.communicate(timeout=MIX_SECONDS)
    if program.returncode != 0:
        raise RuntimeError(f"{MIX} ended with status {program.returncode}")
    told = dict(re.findall(r"(\w+)=(\S+)", output))
    samples = samples_of(curve)
    live_mib = int(told["live_bytes"]) / MIB
    ratio = float(told[f"burst_{MIX_BURSTS}"])
    return MixRun(mix, samples, Sample(samples[-1].ms, ratio * live_mib, live_mib))


def run_mixes(wanted: list[Mix]) -> list[MixRun]:
    """All at the same time: what they hold does not depend on how fast they are."""
    with tempfile.TemporaryDirectory(prefix="tslab-demo-") as folder:
        curves = [Path(folder, f"{index}.csv") for index in range(len(wanted))]
        programs = [start_mix(mix, curve) for mix, curve in zip(wanted, curves, strict=True)]
        try:
            parts = zip(wanted, programs, curves, strict=True)
            return [finish_mix(mix, program, curve) for mix, program, curve in parts]
        finally:
            for program in programs:
                program.kill()
                program.wait()


def columns_of(samples: list[Sample], last_ms: int) -> list[Sample]:
    """The sample with the most memory for each column; one without samples repeats its left."""
    columns: list[Sample] = []
    for column in range(samples[-1].ms * CHART_COLUMNS // (last_ms + 1) + 1):
        start, end = (side * (last_ms + 1) / CHART_COLUMNS for side in (column, column + 1))
        inside = [sample for sample in samples if start <= sample.ms < end]
        fallback = columns[-1] if columns else samples[0]
        columns.append(max(inside, key=lambda sample: sample.resident_mib, default=fallback))
    return columns


def cell(live: int, resident: int) -> str:
    """Both in eighths of the cell: what lives is solid, what is held beyond it is shaded."""
    if live > 0:
        return EIGHTHS[min(live, 8)]
    return SHADE if resident > 3 else " "


def chart(columns: list[Sample], top_mib: float) -> Iterator[str]:
    """Its lines, the upper first, with the scale on the left."""
    eighths = CHART_ROWS * 8 / top_mib
    for row in reversed(range(CHART_ROWS)):
        cells = (
            cell(
                round(sample.live_mib * eighths) - row * 8,
                round(sample.resident_mib * eighths) - row * 8,
            )
            for sample in columns
        )
        scale = {CHART_ROWS - 1: f"{top_mib:.0f} MiB", 0: "0"}.get(row, "")
        yield f"  {scale:>7} |{''.join(cells)}".rstrip()


def show_mixes() -> None:
    step("programs of mixed lifetimes, side by side")
    runs = run_mixes(mixes())
    top_mib = max(sample.resident_mib for run in runs for sample in run.samples)
    last_ms = max(run.end.ms for run in runs)
    print(f"""
Lifetimes mixed: {MIX_BURSTS} bursts of 2000 requests at a time; 2 % of their objects survive in
a store. After each burst the requests are over, and the program does nothing.
Memory over {last_ms / 1000:.1f} s: live {EIGHTHS[8]}, resident beyond that {SHADE}""")
    for run in runs:
        end = run.end
        held = f"{end.resident_mib:.0f} MiB resident for {end.live_mib:.0f} MiB live"
        print(f"\n  {run.mix.title}\n  at the end {held}: {end.resident_mib / end.live_mib:.1f} x")
        print("\n".join(chart(columns_of(run.samples, last_ms), top_mib)))


@contextmanager
def leaker() -> Iterator[tuple[int, int]]:
    """A server that has leaked and waits to be looked at: its process id, and how many objects."""
    arguments = ["--allocator=tslab", "--pattern=leak", f"--duration_s={LEAK_SECONDS}"]
    sampled = {"LD_PRELOAD": str(LIBRARY), "TSLAB_SAMPLE_BYTES": "64K"}
    with subprocess.Popen(
        [str(LEAKER), *arguments, f"--hold_s={COMMAND_SECONDS:.0f}"],
        env={**os.environ, **sampled}, stdout=subprocess.PIPE, text=True,
    ) as server:  # fmt: skip
        try:
            assert server.stdout is not None
            told = re.search(r" leaked=(\d+) ", server.stdout.readline())
            if told is None:
                raise RuntimeError(f"{LEAKER} ended with status {server.wait()}")
            yield server.pid, int(told[1])
        finally:
            server.kill()


def ask_for_leaks(pid: int) -> str:
    """Status 1 says that there are some."""
    time.sleep(1.1)
    command = [str(COMMAND), "leaks", str(pid), "--after", "1"]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=COMMAND_SECONDS
    )
    if done.returncode != 1:
        raise RuntimeError(f"tslab leaks: status {done.returncode}: {done.stdout}{done.stderr}")
    return done.stdout


def show_leak() -> None:
    step(f"a server that leaks for {LEAK_SECONDS} s")
    with leaker() as (pid, leaked):
        print(
            f"""
A leak: {LEAK_SECONDS} s of 2000 requests a second, each in an epoch of its own; one object in a
hundred is forgotten, {leaked} in all. Who looks from outside sees:

$ tslab leaks {pid} --after 1
{ask_for_leaks(pid)}""",
            end="",
        )


def main() -> int:
    for path, maker in ((LIBRARY, "make build"), (MIX, "make build"), (LEAKER, "make build"),
                        (COMMAND, "tools/tslab/build")):  # fmt: skip
        if not path.exists():
            print(f"demo: {path} is missing; run: {maker}", file=sys.stderr)
            return 1
    if shutil.which("redis-server") is None or shutil.which("redis-benchmark") is None:
        print("demo: redis-server or redis-benchmark is missing", file=sys.stderr)
        return 1
    show_redis()
    show_mixes()
    show_leak()
    return 0


if __name__ == "__main__":
    sys.exit(main())
