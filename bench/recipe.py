"""One recipe: the commands of a page of docs/recipes, and the server that they run.

A page names its console blocks: `Prepare`, `Serve` and `Load`. The command that serves names our
library after LD_PRELOAD; an allocator's takes its place.
"""

import os
import re
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BLOCK = re.compile(r'^```console title="(\w+)"\n(.*?)^```$', re.DOTALL | re.MULTILINE)
LIBRARY = "build/lib/libtslab-preload.so"
PORT = re.compile(r"127\.0\.0\.1:(\d+)|-p (\d+)")
RATE = re.compile(
    r"tps = ([\d.]+)|Requests per second: +([\d.]+)|([\d.]+) requests per second", re.MULTILINE
)
PSS = re.compile(r"^Pss:\s+(\d+) kB$", re.MULTILINE)
USER, GROUP = "nobody", "nogroup"
START_SECONDS = 20.0
END_SECONDS = 20.0
COMMAND_SECONDS = 120.0
SAMPLE_SECONDS = 0.25


class RecipeError(Exception):
    """A page that is no recipe, or a command that failed."""


@dataclass(frozen=True)
class Recipe:
    """What a page shows to type."""

    name: str
    prepare: list[str]
    serve: str
    load: list[str]

    @property
    def folder(self) -> Path:
        return ROOT / "build" / "recipes" / self.name

    @property
    def port(self) -> int:
        found = PORT.search(self.load[-1])
        if found is None:
            raise RecipeError(f"{self.name}: the load names no port of 127.0.0.1")
        return int(found[1] or found[2])

    def serve_on(self, library: str) -> str:
        """`exec`, so that the shell is the server."""
        ours = f"LD_PRELOAD={LIBRARY} "
        before, _, program = self.serve.partition(ours)
        return f"exec env {before}LD_PRELOAD={library} {program}"


@dataclass(frozen=True)
class Outcome:
    """What one server did under its load, in KiB and operations a second."""

    peak_kib: int
    loaded_kib: int
    idle_kib: int
    rate: float


def commands_of(block: str) -> list[str]:
    return [line[2:] for line in block.splitlines() if line.startswith("$ ")]


def recipe_of(page: Path) -> Recipe:
    """The recipe that a page shows; RecipeError when it shows none."""
    blocks = {title: commands_of(text) for title, text in BLOCK.findall(page.read_text())}
    serve, load = blocks.pop("Serve", []), blocks.pop("Load", [])
    prepare = blocks.pop("Prepare", [])
    if blocks:
        raise RecipeError(f"{page.name}: no recipe has a block {', '.join(blocks)}")
    if len(serve) != 1 or f"LD_PRELOAD={LIBRARY} " not in serve[0]:
        raise RecipeError(f"{page.name}: `Serve` must have one command, with LD_PRELOAD={LIBRARY}")
    if not load:
        raise RecipeError(f"{page.name}: `Load` has no command")
    return Recipe(page.stem, prepare, serve[0], load)


def account() -> str | None:
    """Servers do not run as root."""
    return USER if os.geteuid() == 0 else None


def start(command: str, output: int | None = None) -> subprocess.Popen[str]:
    """A group of its own, so that the whole server can be ended."""
    user = account()
    return subprocess.Popen(
        ["bash", "-euc", command], cwd=ROOT, stdin=subprocess.DEVNULL, stdout=output,
        stderr=subprocess.STDOUT, text=True, start_new_session=True,
        user=user, group=GROUP if user else None, extra_groups=[] if user else None,
    )  # fmt: skip


def end(process: subprocess.Popen[str], sign: int) -> None:
    """Asks the leader to end, and then makes sure of the whole group."""
    process.send_signal(sign)
    try:
        process.wait(timeout=END_SECONDS)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def run(command: str) -> str:
    """What a command that ends printed."""
    process = start(command, subprocess.PIPE)
    try:
        output, _ = process.communicate(timeout=COMMAND_SECONDS)
    except subprocess.TimeoutExpired as error:
        end(process, signal.SIGKILL)
        raise RecipeError(f"took more than {COMMAND_SECONDS:.0f} s: {command}") from error
    if process.returncode != 0:
        raise RecipeError(f"status {process.returncode}: {command}\n{output}")
    return output


def processes_of(group: int) -> list[int]:
    """The server and all that descends from it; PostgreSQL's have sessions of their own."""
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(stat.read_text().rpartition(")")[2].split()[1])
        except (OSError, IndexError):
            continue  # it ended meanwhile
        children.setdefault(parent, []).append(int(stat.parent.name))
    found = [group]
    for pid in found:
        found += children.get(pid, [])
    return found


def pss_kib(pid: int) -> int:
    """Nothing of a process that ended meanwhile."""
    try:
        found = PSS.search(Path(f"/proc/{pid}/smaps_rollup").read_text())
    except OSError:
        return 0
    return int(found[1]) if found else 0


def resident_kib(server: int) -> int:
    return sum(map(pss_kib, processes_of(server)))


class Peak(threading.Thread):
    """Samples what a server holds until it is told to stop."""

    def __init__(self, server: int) -> None:
        super().__init__()
        self.server, self.kib = server, 0
        self.over = threading.Event()

    def run(self) -> None:
        while not self.over.wait(SAMPLE_SECONDS):
            self.kib = max(self.kib, resident_kib(self.server))

    def __enter__(self) -> "Peak":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self.join()


def has_mapped(pid: int, library: str) -> bool:
    return Path(library).name in Path(f"/proc/{pid}/maps").read_text()


def listens(port: int) -> bool:
    """Asked of the kernel: a connection would be load."""
    wanted = f"0100007F:{port:04X} 00000000:0000 0A"
    return wanted in Path("/proc/net/tcp").read_text()


def wait_until_ready(server: subprocess.Popen[str], recipe: Recipe, log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while not listens(recipe.port):
        if server.poll() is not None or time.monotonic() > deadline:
            raise RecipeError(f"{recipe.name} does not listen on {recipe.port}\n{log.read_text()}")
        time.sleep(0.05)


def make_folder(recipe: Recipe) -> None:
    """An empty one, of the user whom the server runs as."""
    shutil.rmtree(recipe.folder, ignore_errors=True)
    recipe.folder.mkdir(parents=True)
    for folder in (recipe.folder, recipe.folder.parent):
        if user := account():
            shutil.chown(folder, user)
    recipe.folder.chmod(0o700)


@contextmanager
def served(recipe: Recipe, library: str) -> Iterator[int]:
    """The server's process; it is gone afterwards."""
    if listens(recipe.port):
        raise RecipeError(f"{recipe.name}: port {recipe.port} is taken; end who listens there")
    log = recipe.folder.parent / f"{recipe.name}.log"
    with log.open("w") as output:
        server = start(recipe.serve_on(library), output.fileno())
    try:
        wait_until_ready(server, recipe, log)
        if not has_mapped(server.pid, library):
            raise RecipeError(f"{recipe.name} runs without {library}")
        yield server.pid
    finally:
        end(server, signal.SIGTERM)


def rate_of(output: str) -> float:
    """The last that the load told."""
    found = RATE.findall(output)
    if not found or "Non-2xx" in output:
        raise RecipeError(f"the load tells no rate, or of answers that are none:\n{output}")
    return float("".join(found[-1]))


def measure(recipe: Recipe, library: str, idle_seconds: float) -> Outcome:
    """One server from its start to its end."""
    make_folder(recipe)
    for command in recipe.prepare:
        run(command)
    with served(recipe, library) as server:
        with Peak(server) as peak:
            output = [run(command) for command in recipe.load]
        loaded = resident_kib(server)
        time.sleep(idle_seconds)
        most = max(peak.kib, loaded)
        return Outcome(most, loaded, resident_kib(server), rate_of(output[-1]))
