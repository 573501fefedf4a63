"""What real programs keep resident after a burst, on tslab and its peers, with default options.

    tools/bootstrap build flushed runner
    tools/build release libraries
    .venv/bin/python bench/flushed.py redis python

Each program fills up, lets all of it go, and is looked at two seconds later, while it sleeps.
"""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import click
from peers import Allocator, all_allocators
from results_page import lines_of

ROOT = Path(__file__).resolve().parent.parent
USER = "nobody"
VALUES, ROWS, BUFFERS = 600_000, 100_000, 20_000
BATCH = 1_000
CLIENTS = 500
START_SECONDS = 20.0
ANSWER_SECONDS = 60.0
IDLE_SECONDS = 2.0
RSS = re.compile(r"^Rss:\s+(\d+) kB$", re.MULTILINE)
HEADINGS = ("program", "allocator", "full, MiB", "later, MiB")

PYTHON = """
import sys
rows = [bytes(520 + number % 3500) for number in range(int(sys.argv[1]))]
print("full", flush=True)
sys.stdin.readline()
del rows
print("empty", flush=True)
sys.stdin.readline()
"""
NODE = """
let rows = [];
const count = Number(process.argv[1]);
for (let n = 0; n < count; n++) rows.push(Buffer.alloc(5000 + n % 9000, 1));
console.log("full");
process.stdin.once("data", () => {
  rows = null;
  gc();
  gc();
  console.log("empty");
});
"""


class FlushedError(Exception):
    """A program that is missing, ended, or ran on another malloc."""


@dataclass(frozen=True)
class Outcome:
    """What a process had resident before it let all go, and two seconds later."""

    full_kib: int
    later_kib: int


def program_path(name: str) -> str:
    path = shutil.which(name)
    if path is None:
        raise FlushedError(f"{name} is missing; run: tools/bootstrap flushed")
    return path


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def resident_kib(pid: int) -> int:
    found = RSS.search(Path(f"/proc/{pid}/smaps_rollup").read_text())
    if found is None:
        raise FlushedError(f"process {pid} has no memory")
    return int(found[1])


def check_allocator(pid: int, allocator: Allocator) -> None:
    """A program that drops LD_PRELOAD runs on another malloc."""
    library = allocator.library
    maps = Path(f"/proc/{pid}/maps").read_text()
    if library is not None and str(library.resolve()) not in maps:
        raise FlushedError(f"process {pid} does not run on {library}")


def environment_of(allocator: Allocator) -> dict[str, str]:
    """Nearly empty: no allocator finds settings left by the user."""
    environment = {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"}
    environment |= dict(allocator.environment)
    if allocator.library is not None:
        environment["LD_PRELOAD"] = str(allocator.library)
    return environment


@contextmanager
def started(allocator: Allocator, *command: str) -> Iterator[subprocess.Popen[str]]:
    with tempfile.TemporaryDirectory() as folder, subprocess.Popen(
        command, env=environment_of(allocator), cwd=folder, stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, start_new_session=True,
    ) as process:  # fmt: skip
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def connect(server: subprocess.Popen[str], port: int) -> socket.socket:
    deadline = time.monotonic() + START_SECONDS
    while server.poll() is None and time.monotonic() < deadline:
        with suppress(ConnectionRefusedError):
            return socket.create_connection(("127.0.0.1", port), ANSWER_SECONDS)
        time.sleep(0.05)
    raise FlushedError(f"{server.args!r} does not listen")


def receive(connection: socket.socket, lines: int) -> None:
    """Reads so many lines of answers."""
    while lines > 0:
        part = connection.recv(1 << 16)
        if not part:
            raise FlushedError("the server has closed the connection")
        lines -= part.count(b"\n")


def value(number: int) -> bytes:
    """40 to 640 bytes."""
    return b"x" * (40 + number * 7919 % 601)


def fill(connection: socket.socket, store: str, values: int) -> None:
    """`store` is a command of the server's, up to the value: it wants the key and the length."""
    for start in range(0, values, BATCH):
        numbers = range(start, min(start + BATCH, values))
        commands = ((store % (n, len(value(n)))).encode() + value(n) + b"\r\n" for n in numbers)
        connection.sendall(b"".join(commands))
        receive(connection, len(numbers))


def later(process: subprocess.Popen[str], allocator: Allocator, full_kib: int) -> Outcome:
    time.sleep(IDLE_SECONDS)
    check_allocator(process.pid, allocator)
    return Outcome(full_kib, resident_kib(process.pid))


def redis(allocator: Allocator, scale: int) -> Outcome:
    port = free_port()
    options = ("--port", str(port), "--save", "", "--bind", "127.0.0.1")
    server = started(allocator, program_path("redis-server"), *options)
    with server as process, connect(process, port) as connection:
        fill(connection, "*3\r\n$3\r\nSET\r\n$11\r\nkey%08d\r\n$%d\r\n", VALUES // scale)
        full = resident_kib(process.pid)
        connection.sendall(b"FLUSHALL\r\n")
        receive(connection, 1)
        return later(process, allocator, full)


def memcached(allocator: Allocator, scale: int) -> Outcome:
    """memcached never gives its store back; what goes are the buffers of many connections."""
    port = free_port()
    options = ("-l", "127.0.0.1", "-p", str(port), "-c", "4096", "-u", USER)
    server = started(allocator, program_path("memcached"), *options)
    with server as process, connect(process, port) as connection, ExitStack() as closing:
        fill(connection, "set key%08d 0 0 %d\r\n", BATCH)
        ask = b"get " + b" ".join(b"key%08d" % number for number in range(BATCH)) + b"\r\n"
        clients = [closing.enter_context(connect(process, port)) for _ in range(CLIENTS // scale)]
        for client in clients:
            client.sendall(ask)
        for client in clients:
            receive(client, 2 * BATCH + 1)
        full = resident_kib(process.pid)
        closing.close()
        return later(process, allocator, full)


def script(allocator: Allocator, *command: str) -> Outcome:
    """A program that says when it is full, and on a line from us lets all go and says so."""
    with started(allocator, *command) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        if not process.stdout.readline():
            raise FlushedError(f"{command[0]} has ended")
        full = resident_kib(process.pid)
        process.stdin.write("\n")
        process.stdin.flush()
        process.stdout.readline()
        return later(process, allocator, full)


def python(allocator: Allocator, scale: int) -> Outcome:
    return script(allocator, sys.executable, "-c", PYTHON, str(ROWS // scale))


def node(allocator: Allocator, scale: int) -> Outcome:
    path = program_path("node")
    return script(allocator, path, "--expose-gc", "-e", NODE, str(BUFFERS // scale))


PROGRAMS = {"redis": redis, "memcached": memcached, "python": python, "node": node}


def chosen_of(build: Path, names: Sequence[str]) -> list[Allocator]:
    """Those of these names; without names, all that are there."""
    known = {one.name: one for one in all_allocators(build)}
    if unknown := set(names) - set(known):
        raise FlushedError(f"no allocator {', '.join(unknown)}; there are: {', '.join(known)}")
    chosen = [known[name] for name in names] or [one for one in known.values() if one.exists()]
    if missing := [one.name for one in chosen if not one.exists()]:
        raise FlushedError(f"no library of {', '.join(missing)} below {build}")
    return chosen


def row_of(program: str, allocator: Allocator, outcomes: Sequence[Outcome]) -> list[str]:
    full = median(one.full_kib for one in outcomes) / 1024
    after = median(one.later_kib for one in outcomes) / 1024
    return [program, allocator.name, f"{full:.1f}", f"{after:.1f}"]


def rows_of(
    program: str, allocators: Sequence[Allocator], rounds: int, scale: int
) -> Iterator[list[str]]:
    """The allocators take turns."""
    turns = [[PROGRAMS[program](one, scale) for one in allocators] for _ in range(rounds)]
    for allocator, outcomes in zip(allocators, zip(*turns, strict=True), strict=True):
        yield row_of(program, allocator, outcomes)


@click.command()
@click.argument("programs", nargs=-1, type=click.Choice(list(PROGRAMS)))
@click.option("--on", "names", multiple=True, metavar="ALLOCATOR", help="Only on this one.")
@click.option("--rounds", default=7, type=click.IntRange(1, 20), show_default=True)
@click.option("--scale", default=1, type=click.IntRange(1, 100), help="10: a tenth of the burst.")
@click.option("--build", default=ROOT / "build", type=click.Path(path_type=Path), show_default=True)
def main(
    programs: tuple[str, ...], names: tuple[str, ...], rounds: int, scale: int, build: Path
) -> None:
    """Runs the PROGRAMS, or all, and prints the medians of the rounds."""
    try:
        allocators = chosen_of(build, names)
        rows = [
            row
            for program in programs or PROGRAMS
            for row in rows_of(program, allocators, rounds, scale)
        ]
    except (FlushedError, OSError) as error:
        raise click.ClickException(str(error)) from error
    click.echo("\n".join(lines_of(HEADINGS, rows)))


if __name__ == "__main__":
    main()
