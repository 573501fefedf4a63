"""Runs one program under one allocator and collects what it and the kernel say."""

import os
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from backing import back
from peers import OURS, Allocator, true_version
from work import Work

TIMEOUT_S = 300.0

_children: set[subprocess.Popen[str]] = set()


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


def command_line(build: Path, work: Work, allocator: Allocator, folder: Path | None) -> list[str]:
    name, *arguments = work.command_of(allocator.name == OURS)
    program = name if work.system else str(build / "bin" / name)
    writes = [word.format(folder=folder) for word in work.writes]
    return [str(build / "bin" / "measure"), allocator.preload, program, *arguments, *writes]


def end(child: subprocess.Popen[str]) -> None:
    """And all that it started: its process group bears its id."""
    if child.poll() is None:
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)


def end_children() -> None:
    """For an interruption, which does not reach the other threads that wait for programs."""
    for child in tuple(_children):
        end(child)


@contextmanager
def ended(child: subprocess.Popen[str]) -> Iterator[None]:
    """However the wait for a program ends, it runs no longer."""
    _children.add(child)
    try:
        yield
    finally:
        end(child)
        _children.discard(child)


def start(command: list[str], work: Work, allocator: Allocator) -> subprocess.CompletedProcess[str]:
    """A nearly empty environment, so that no allocator finds settings left by the user."""
    environment = {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "LC_ALL": "C"}
    environment |= dict(allocator.environment)
    try:
        with (
            (work.input or Path(os.devnull)).open() as source,
            subprocess.Popen(
                command, env=environment, cwd=work.place, stdin=source, stdout=subprocess.PIPE,
                stderr=subprocess.PIPE, text=True, errors="replace", process_group=0,
            ) as child,
            ended(child),
        ):  # fmt: skip
            stdout, stderr = child.communicate(timeout=TIMEOUT_S)
            return subprocess.CompletedProcess(command, child.returncode, stdout, stderr)
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


def check_end(work: Work, done: subprocess.CompletedProcess[str]) -> None:
    """Our programs say nothing on stderr; foreign ones may, and the loader must not."""
    silent = not done.stderr or (work.foreign and "cannot be preloaded" not in done.stderr)
    if done.returncode != 0 or not silent:
        raise RunError(f"status {done.returncode}: {done.stderr.strip()[:400]}")


def score_of(work: Work, output: str) -> dict[str, float]:
    """The figure that a foreign program prints in words of its own."""
    if not work.score:
        return {}
    found = re.search(work.score, output, re.MULTILINE)
    if found is None:
        raise RunError(f"its output has nothing like {work.score}")
    return {"score": float(found[1])}


def measure(
    build: Path, number: int, work: Work, allocator: Allocator, folder: Path | None = None
) -> Run:
    """Besides its own figures a run keeps what others took: `others_s` and `steal_s`."""
    command = command_line(build, work, allocator, folder)
    if work.backed_mib > 0:
        back(work.backed_mib)
    before = Machine.now()
    done = start(command, work, allocator)
    after = Machine.now()
    check_end(work, done)
    result = line_of(done.stdout, "result") if not work.foreign else {}
    check_allocator(work, allocator, result)
    # measure's own line comes last, whatever a foreign program prints.
    usage = line_of("\n".join(reversed(done.stdout.splitlines())), "usage")
    values = numbers_of(usage) | numbers_of(result) | score_of(work, done.stdout)
    own_s = values["user_s"] + values["sys_s"]
    values["others_s"] = max(0.0, after.busy_s - before.busy_s - own_s)
    values["steal_s"] = after.steal_s - before.steal_s
    version = true_version(allocator, result.get("version", "unknown"))
    return Run(number, work.name, allocator.name, version, values)
