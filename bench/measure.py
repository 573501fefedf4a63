"""Runs one program under one allocator and collects what it and the kernel say."""

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from peers import OURS, Allocator, true_version
from work import Work

TIMEOUT_S = 300.0


class RunError(Exception):
    """A run that must not enter the results."""


@dataclass(frozen=True)
class Run:
    """One run's figures: `values` from the program and the kernel by their keys."""

    number: int  # of the round
    work: str
    allocator: str
    version: str
    values: dict[str, float]


def pairs_of(line: str) -> dict[str, str]:
    """The key=value pairs of a result or usage line."""
    return dict(word.split("=", 1) for word in line.split()[1:])


def line_of(output: str, first_word: str) -> dict[str, str]:
    for line in output.splitlines():
        if line.startswith(first_word + " "):
            return pairs_of(line)
    return {}


@dataclass(frozen=True)
class Machine:
    """What all processors did since boot, in seconds."""

    busy_s: float
    steal_s: float

    @staticmethod
    def now() -> "Machine":
        ticks = [int(word) for word in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]]
        user, nice, system, _idle, _iowait, irq, softirq, steal = ticks[:8]
        a_second = os.sysconf("SC_CLK_TCK")
        return Machine((user + nice + system + irq + softirq) / a_second, steal / a_second)


def numbers_of(pairs: dict[str, str]) -> dict[str, float]:
    numbers: dict[str, float] = {}
    for key, text in pairs.items():
        try:
            numbers[key] = float(text)
        except ValueError:
            continue
    return numbers


def start(build: Path, work: Work, allocator: Allocator) -> subprocess.CompletedProcess[str]:
    """A nearly empty environment, so that no allocator finds settings left by the user."""
    name, *arguments = work.command_of(allocator.name == OURS)
    program = name if work.system else str(build / "bin" / name)
    command = [str(build / "bin" / "measure"), allocator.preload, program, *arguments]
    environment = {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "LC_ALL": "C"}
    try:
        return subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise RunError(f"no end within {TIMEOUT_S:.0f} s") from error
    except OSError as error:
        raise RunError(str(error)) from error


def check_allocator(work: Work, allocator: Allocator, result: dict[str, str]) -> None:
    """A run on any other malloc than the one asked for is worthless."""
    if work.system:
        return
    wanted = {allocator.file}
    if allocator.library is not None:
        wanted.add(allocator.library.resolve().name)
    if result.get("allocator") not in wanted:
        raise RunError(f"ran on {result.get('allocator')}, not on {allocator.file}")


def measure(build: Path, number: int, work: Work, allocator: Allocator) -> Run:
    """Besides its own figures a run keeps what others took: `others_s` and `steal_s`."""
    before = Machine.now()
    done = start(build, work, allocator)
    after = Machine.now()
    if done.returncode != 0 or done.stderr:
        raise RunError(f"status {done.returncode}: {done.stderr.strip()[:400]}")
    result = line_of(done.stdout, "result")
    check_allocator(work, allocator, result)
    values = numbers_of(line_of(done.stdout, "usage")) | numbers_of(result)
    own_s = values["user_s"] + values["sys_s"]
    values["others_s"] = max(0.0, after.busy_s - before.busy_s - own_s)
    values["steal_s"] = after.steal_s - before.steal_s
    version = true_version(allocator, result.get("version", "unknown"))
    return Run(number, work.name, allocator.name, version, values)
