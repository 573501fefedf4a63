"""Runs a real program without the library and with it preloaded, and compares what comes out.

    programs.py --preload LIBRARY NAME [ARGUMENT...]

NAME is one of the programs below. Exit status 77 means that the program is not installed, or that
it fails without the library too and is not ours: then the test says nothing about the library.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

SKIPPED = 77
SECONDS = 150
WORKLOADS = Path(__file__).resolve().parent / "workloads"
PROJECT = Path(__file__).resolve().parents[2]

# Words on stderr that no run may produce, whatever its exit status.
COMPLAINTS = ("tslab: ", "cannot be preloaded")

REDIS_ITEMS = 20000
REDIS_REQUESTS = 40000

PYTHON_TESTS = [
    "test_dict",
    "test_list",
    "test_set",
    "test_json",
    "test_re",
    "test_threading",
    "test_queue",
    "test_bytes",
    "test_pickle",
    "test_zlib",
    "test_weakref",
    "test_gc",
    "test_struct",
    "test_memoryview",
    "test_sqlite3",
]

NO_VARIABLES: dict[str, str] = {}
PERL_ORDER = {"PERL_HASH_SEED": "0", "PERL_PERTURB_KEYS": "0"}

# Prints those of the arguments that are modules of the package `test`.
FIND_TESTS = """
import importlib.util, sys
print(*(name for name in sys.argv[1:] if importlib.util.find_spec("test." + name)))
"""

PYTHON_TESTS_LEFT_OUT = (
    # Fails wherever a .pth file of the installation imports threading first.
    "test_import_from_another_thread",
    # Their threads may outlive the subinterpreter for a moment: `drop_gil` of CPython 3.11 then
    # reads its freed state, and a freed large block may be inaccessible (option `detain_ms`).
    "test_threads_join*",
)


class ProgramError(Exception):
    """The program failed, or said what it must not say."""


class MissingError(Exception):
    """The program, or a part of it, is not installed here."""


def tail(text: bytes) -> str:
    return text.decode(errors="replace")[-3000:]


@dataclass(frozen=True)
class Run:
    """One run of a workload: a folder of its own, and the library or none."""

    folder: Path
    library: Path | None

    def environment(self, extra: dict[str, str]) -> dict[str, str]:
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.folder), "LC_ALL": "C.UTF-8"}
        if self.library is not None:
            environment["LD_PRELOAD"] = str(self.library)
        return environment | extra

    def __call__(
        self, *command: str | Path, stdin: bytes = b"", variables: dict[str, str] = NO_VARIABLES
    ) -> bytes:
        """Standard output of a command that must succeed without a complaint."""
        words = [str(word) for word in command]
        done = subprocess.run(
            words,
            cwd=self.folder,
            env=self.environment(variables),
            input=stdin,
            capture_output=True,
            timeout=SECONDS,
            check=False,
        )
        complaint = any(text.encode() in done.stderr for text in COMPLAINTS)
        if done.returncode != 0 or complaint:
            raise ProgramError(
                f"{shlex.join(words)}\nended with status {done.returncode}\n"
                f"{tail(done.stdout)}\n{tail(done.stderr)}"
            )
        return done.stdout

    def digest(self, name: str) -> str:
        return hashlib.sha256((self.folder / name).read_bytes()).hexdigest()


def needed(*names: str) -> list[str]:
    """Paths of programs; the test is skipped when one is missing."""
    found = [shutil.which(name) for name in names]
    missing = [name for name, path in zip(names, found, strict=True) if path is None]
    if missing:
        raise MissingError(f"not installed: {' '.join(missing)}")
    return [path for path in found if path is not None]


def python_with_tests() -> str:
    """A Python that has its own test suite beside it."""
    for candidate in (sys.executable, "/usr/bin/python3", shutil.which("python3")):
        if candidate is None or not Path(candidate).exists():
            continue
        probe = [candidate, "-c", "import sys, test.test_dict; print(sys.executable)"]
        found = subprocess.run(probe, capture_output=True, text=True, check=False)
        if found.returncode == 0:
            return found.stdout.strip()
    raise MissingError("no Python here has its test suite (in Debian: libpython3.N-testsuite)")


def python(run: Run) -> str:
    """Part of Python's own test suite, with every object allocated by malloc."""
    interpreter = python_with_tests()
    present = run(
        interpreter,
        "-c",
        FIND_TESTS,
        *PYTHON_TESTS,
    )
    options = ["-j2", *(f"--ignore={test}" for test in PYTHON_TESTS_LEFT_OUT)]
    run(
        interpreter,
        "-m",
        "test",
        *options,
        *present.decode().split(),
        variables={"PYTHONMALLOC": "malloc"},
    )
    return "passed"


def git(run: Run) -> str:
    """A repository's life: commits, branches, merges, repacking, checking, cloning."""
    needed("git")
    identity = {
        f"GIT_{role}_{what}": value
        for role in ("AUTHOR", "COMMITTER")
        for what, value in (("NAME", "N"), ("EMAIL", "n@example.org"), ("DATE", "1700000000 +0000"))
    }

    def command(*words: str) -> bytes:
        settings = ["-c", "pack.threads=2", "-c", "gc.auto=0"]
        return run("git", *settings, *words, variables=identity)

    command("init", "-q", "-b", "main")
    for commit in range(15):
        for number in range(20):
            lines = [f"{number} {line * (commit % 7 + 1)}\n" for line in range(200)]
            (run.folder / f"file-{number}").write_text("".join(lines))
        command("add", "-A")
        command("commit", "-q", "--allow-empty", "-m", f"commit {commit}")
        if commit % 5 == 4:
            command("checkout", "-q", "-b", f"branch-{commit}")
    command("repack", "-adq")
    command("fsck", "--full", "--strict", "--no-progress")
    command("clone", "-q", "--no-local", ".", "clone")
    parts = [
        command("log", "-p", "--stat", "--all"),
        command("rev-list", "--objects", "--all"),
        command("blame", "file-3"),
        command("grep", "-c", "1"),
        command("-C", "clone", "rev-parse", "HEAD"),
    ]
    return hashlib.sha256(b"".join(parts)).hexdigest()


def gcc(run: Run) -> str:
    """Templates compiled to the same object, byte by byte, and run."""
    needed("g++")
    shutil.copy(WORKLOADS / "templates.cpp", run.folder)
    options = ["-std=c++17", "-O2", "-g", "-frandom-seed=1"]
    run("g++", *options, "-c", "templates.cpp", "-o", "templates.o")
    run("g++", "templates.o", "-o", "templates")
    return run.digest("templates.o") + run("./templates").decode()


def own_sources(run: Run, commands: str) -> str:
    """A third of the library's own sources compiled under itself, as the build did it."""
    entries = [
        entry
        for entry in json.loads(Path(commands).read_text())
        if Path(entry["file"]).is_relative_to(PROJECT / "src")
    ]
    entries = entries[::3]
    if not entries:
        raise ProgramError(f"{commands} lists no file of ours")

    def compile_one(entry: dict[str, str]) -> str:
        words = shlex.split(entry["command"])
        output = words.index("-o") + 1
        target = words[output]
        words[output] = target.replace("/", "-")
        run(*words)
        return f"{target} {run.digest(words[output])}"

    with ThreadPoolExecutor(2) as pool:
        return "\n".join(pool.map(compile_one, entries))


def sqlite(run: Run) -> str:
    """Inserts, indices, joins and aggregates, in a file and in memory."""
    needed("sqlite3")
    script = (WORKLOADS / "tables.sql").read_bytes()
    results = [
        run("sqlite3", "-batch", database, stdin=script) for database in (":memory:", "t.db")
    ]
    return b"".join(
        [*results, run("sqlite3", "t.db", "pragma integrity_check; select count(*) from t;")]
    ).decode()


def perl(run: Run) -> str:
    """Hashes, sorting, regular expressions."""
    needed("perl")
    return run("perl", WORKLOADS / "words.pl", variables=PERL_ORDER).decode()


def node(run: Run) -> str:
    """JSON, maps, buffers, and worker threads that hand buffers over."""
    needed("node")
    return run("node", WORKLOADS / "workers.js").decode()


def java(run: Run) -> str:
    """The virtual machine's start; where there is a compiler, threads and buffers too."""
    needed("java")
    run("java", "-version")
    if shutil.which("javac") is None:
        return "no javac"
    run("javac", "-d", run.folder, WORKLOADS / "Main.java")
    return run.digest("Main.class") + run("java", "-Xmx256m", "-cp", run.folder, "Main").decode()


def cmake(run: Run) -> str:
    """This project, configured and asked what it would build."""
    needed("cmake", "ninja")
    run("cmake", "-G", "Ninja", "-S", PROJECT, "-B", "build", "-DTSLAB_TESTS=OFF")
    return run("ninja", "-C", "build", "-t", "targets", "all").decode()


def redis_commands() -> bytes:
    lines = []
    for number in range(REDIS_ITEMS):
        lines.append(f"SET string:{number} {'v' * (number % 500 + 1)}")
        lines.append(f"HSET hash:{number % 500} field:{number} {number}")
        lines.append(f"RPUSH list:{number % 100} {'e' * (number % 50 + 1)}")
        lines.append(f"ZADD set:{number % 50} {number % 977} member:{number}")
        if number % 3 == 0:
            lines.append(f"DEL string:{number // 2}")
    return ("\r\n".join(lines) + "\r\n").encode()


@contextmanager
def redis_server(run: Run) -> Iterator[Callable[..., bytes]]:
    """A server on a socket in the run's folder; yields a client, and the server must end well."""
    options = "--port 0 --unixsocket socket --appendonly no --enable-debug-command yes --save"
    with (run.folder / "log").open("wb") as log:
        server = subprocess.Popen(
            ["redis-server", *options.split(), ""],
            cwd=run.folder,
            env=run.environment({}),
            stdout=log,
            stderr=log,
        )

    def client(*words: str, stdin: bytes = b"") -> bytes:
        return run("redis-cli", "-s", "socket", *words, stdin=stdin)

    try:
        end = time.monotonic() + 20
        while not (run.folder / "socket").exists() and time.monotonic() < end:
            time.sleep(0.05)
        yield client
        run("redis-cli", "-s", "socket", "SHUTDOWN", "NOSAVE")
        status = server.wait(timeout=30)
        said = (run.folder / "log").read_bytes()
        if status != 0 or any(text.encode() in said for text in COMPLAINTS):
            raise ProgramError(f"redis-server ended with status {status}\n{tail(said)}")
    finally:
        if server.poll() is None:
            server.kill()
            server.wait()


def redis(run: Run) -> str:
    """A load of every kind, a snapshot by fork under load, and the content that must be there."""
    needed("redis-server", "redis-cli", "redis-benchmark")
    load = f"-s socket -q -n {REDIS_REQUESTS} -c 20 -P 4 -d 300 -r 10000".split()
    with redis_server(run) as client:
        run("redis-benchmark", *load, "-t", "set,get,lpush,lpop,hset,zadd,lrange_100")
        client("BGSAVE")
        run("redis-benchmark", *load, "-t", "set,sadd")
        client("FLUSHALL")
        client("--pipe", stdin=redis_commands())
        return (client("DEBUG", "DIGEST") + client("DBSIZE")).decode()


def tests(run: Run, *programs: str) -> str:
    """Other test programs of this project, each of which must pass."""
    for program in programs:
        run(program)
    return "passed"


PROGRAMS: dict[str, Callable[..., str]] = {
    "python": python,
    "git": git,
    "gcc": gcc,
    "own_sources": own_sources,
    "sqlite": sqlite,
    "perl": perl,
    "node": node,
    "java": java,
    "cmake": cmake,
    "redis": redis,
    "tests": tests,
}

# Their result says nothing beyond success: without the library they run only to judge a failure.
JUDGED_BY_SUCCESS = {"python", "tests"}

# The project's own: where they fail without the library, the project is wrong, not the machine.
OURS = {"tests"}


def check_preloading(library: Path) -> None:
    """The loader must take the library: otherwise every comparison would be empty."""
    environment = {"LD_PRELOAD": str(library), "LD_TRACE_LOADED_OBJECTS": "1"}
    true = shutil.which("true")
    listing = subprocess.run(
        str(true), env=environment, capture_output=True, text=True, check=False
    )
    if library.name.split(".")[0] not in listing.stdout or listing.stderr:
        raise ProgramError(f"{library} cannot be preloaded: {listing.stdout}{listing.stderr}")


def result_of(name: str, arguments: list[str], library: Path | None) -> str:
    """The result of one run, at a path that both share: programs write it into their output."""
    folder = Path(tempfile.gettempdir()) / f"tslab-{name}-{os.getpid()}"
    folder.mkdir()
    try:
        return PROGRAMS[name](Run(folder, library), *arguments)
    finally:
        shutil.rmtree(folder)


def plain_result(name: str, arguments: list[str]) -> str:
    try:
        return result_of(name, arguments, None)
    except ProgramError as error:
        if name in OURS:
            raise
        raise MissingError(f"fails without the library too:\n{error}") from error


def compare(name: str, arguments: list[str], library: Path) -> None:
    try:
        ours = result_of(name, arguments, library)
    except ProgramError:
        plain_result(name, arguments)
        raise
    if name in JUDGED_BY_SUCCESS:
        return
    plain = plain_result(name, arguments)
    if ours != plain:
        raise ProgramError(f"the results differ\nwithout the library:\n{plain}\nwith it:\n{ours}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--preload", type=Path, required=True)
    parser.add_argument("name", choices=sorted(PROGRAMS))
    parser.add_argument("arguments", nargs="*")
    arguments = parser.parse_args()
    try:
        check_preloading(arguments.preload)
        compare(arguments.name, arguments.arguments, arguments.preload)
    except MissingError as error:
        print(f"skipped: {error}")
        return SKIPPED
    except (ProgramError, subprocess.TimeoutExpired) as error:
        print(error)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
