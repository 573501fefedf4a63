"""A Redis server on tslab and on its peers, under the same bounded load, compared in a small table.

Everything stays on the loopback interface; the servers keep nothing on disk and end with the demo.
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

ROUNDS = 3
REQUESTS = 200_000
COMMANDS = ("set", "get", "lpush", "lpop")
LOAD = ("-n", str(REQUESTS), "-r", "200000", "-d", "128", "-P", "16", "-c", "16")
START_SECONDS = 10.0
LOAD_SECONDS = 120.0
LIBRARY = Path(__file__).resolve().parent.parent / "build/lib/libtslab-preload.so"


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


def main() -> int:
    if not LIBRARY.exists():
        print(f"demo: {LIBRARY} is missing; run: make build", file=sys.stderr)
        return 1
    if shutil.which("redis-server") is None or shutil.which("redis-benchmark") is None:
        print("demo: redis-server or redis-benchmark is missing", file=sys.stderr)
        return 1
    measured = arms()
    print(f"Redis, {REQUESTS} requests a command, {ROUNDS} servers an allocator, medians:")
    for _ in range(ROUNDS):
        for arm in measured:
            measure(arm)
    print(table(measured))
    return 0


if __name__ == "__main__":
    sys.exit(main())
