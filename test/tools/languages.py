"""Functions of other languages in call stacks, as `tslab profile` names them.

languages.py TSLAB PRELOAD CHECK [SOURCE]

CHECK is one of those below. SOURCE is a C++ program, or one in Rust to be compiled.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from command import Command, MissingError, first_line, needed, process, status_of

# With a sample in 4 KiB, of 2 MB there are 488 on average: so many are never missing.
LIVE_BYTES = 2_000_000
MOST_OFF = 0.4
OLDEST_PYTHON_WITH_MAP = 12

NODE = """
const kept = [];
function parseHeader() { return Buffer.allocUnsafeSlow(10000); }
function handleRequest() { kept.push(parseHeader()); }
for (let i = 0; i < 200; i++) handleRequest();
console.log("ready");
setInterval(() => kept.length, 1000);
"""
PYTHON = """
import sys
kept = []
def parse_header():
    return bytearray(10000)
def handle_request():
    kept.append(parse_header())
for _ in range(200):
    handle_request()
print("ready", flush=True)
sys.stdin.read()
"""


@contextmanager
def sampled(preload: str, *command: str, **variables: str) -> Iterator[str]:
    """A process whose samples are complete; its number. Its map goes when it has ended."""
    settings = {"TSLAB_SAMPLE_BYTES": "4K", "TSLAB_SAMPLE_RATE": "0", **variables}
    given = [f"{name}={value}" for name, value in settings.items()]
    # With its map V8 writes a log into its working directory.
    with (
        tempfile.TemporaryDirectory() as folder,
        process("env", "-C", folder, *given, *command, preload=preload) as child,
    ):
        try:
            assert first_line(child) == "ready\n", command
            yield str(child.pid)
        finally:
            Path(f"/tmp/perf-{child.pid}.map").unlink(missing_ok=True)


def stacks_through(tslab: Command, pid: str, functions: list[str]) -> int:
    """Bytes that live, by stacks that go through these functions, the innermost first."""
    told = tslab.json("profile", pid, "--seconds", "0")
    found = 0
    for sample in told["samples"]:
        left = iter(sample["stack"])
        if all(any(re.fullmatch(name, call) for call in left) for name in functions):
            found += sample["bytes"]
    return found


def check(tslab: Command, pid: str, *functions: str) -> None:
    found = stacks_through(tslab, pid, list(functions))
    if abs(found - LIVE_BYTES) > MOST_OFF * LIVE_BYTES:
        said = tslab.run("profile", pid, "--seconds", "0", "--format", "folded", "-o", "-")
        raise AssertionError(f"{found} bytes by way of {functions}:\n{said}")


def check_cxx(tslab: Command, preload: str, keeper: str) -> None:
    with sampled(preload, keeper) as pid:
        check(tslab, pid, r"shop::cart<std::.*string.*>::add\(std::.*string.*\)", "main")


def check_rust(tslab: Command, preload: str, source: str) -> None:
    needed("rustc")
    with tempfile.TemporaryDirectory() as folder:
        for mangling in ("legacy", "v0"):
            program = str(Path(folder) / mangling)
            names = ["-Zunstable-options", f"-Csymbol-mangling-version={mangling}"]
            words = ["rustc", "--crate-name=keeper", "-Copt-level=1", *names, "-o", program, source]
            subprocess.run(words, env={**os.environ, "RUSTC_BOOTSTRAP": "1"}, check=True)
            with sampled(preload, program) as pid:
                check(tslab, pid, r"<?keeper::shop::Cart<.*>::add", r".*::main")


def check_node(tslab: Command, preload: str) -> None:
    needed("node")
    # Each function is compiled when it is first called, and none into another.
    options = ("--perf-basic-prof", "--always-sparkplug", "--no-opt", "--no-maglev")
    with sampled(preload, "node", *options, "-e", NODE) as pid:
        check(tslab, pid, "node::.*", "parseHeader", "handleRequest", "v8::internal::.*Invoke.*")


def pythons() -> dict[str, str]:
    """The interpreters here that write a map, by their versions."""
    found = {}
    for version in range(OLDEST_PYTHON_WITH_MAP, OLDEST_PYTHON_WITH_MAP + 8):
        name = f"python3.{version}"
        own = sorted(Path.home().glob(f".pyenv/versions/3.{version}.*/bin/{name}"))
        path = str(own[-1]) if own else shutil.which(name)
        if path is not None:
            found[name] = path
    return found


def check_python(tslab: Command, preload: str) -> None:
    if not pythons():
        raise MissingError(f"no Python here is 3.{OLDEST_PYTHON_WITH_MAP} or later")
    for name, path in pythons().items():
        with sampled(preload, path, "-X", "perf", "-c", PYTHON) as pid:
            frames = ("parse_header", "handle_request", "<module>", "pymain_.*")
            check(tslab, pid, "bytearray.*", *frames)
        print(f"{name} names its functions")


def check_note(tslab: Command, preload: str) -> None:
    """Who does not see small objects is told so, when they start Python and when they look."""
    python = sys.executable
    with sampled(preload, python, "-c", PYTHON) as pid:
        for look in (("profile", pid, "--seconds", "0"), ("stats", pid), ("why", pid)):
            assert "PYTHONMALLOC=malloc" in tslab.streams(*look, "--json")[1], look
    with sampled(preload, python, "-c", PYTHON, PYTHONMALLOC="malloc") as pid:
        for look in (("profile", pid, "--seconds", "0"), ("stats", pid), ("why", pid)):
            assert "PYTHON" not in tslab.streams(*look, "--json")[1], look
    started = ("run", "--library", preload, "--", python, "-c", "print(1)")
    said = tslab.streams(*started)
    assert said[0] == "1\n", said
    assert "PYTHONMALLOC=malloc" in said[1], said


CHECKS: dict[str, Callable[..., None]] = {
    "cxx": check_cxx,
    "rust": check_rust,
    "node": check_node,
    "python": check_python,
    "note": check_note,
}


def main(tslab_path: str, preload: str, name: str, *source: str) -> int:
    return status_of(CHECKS[name], Command(tslab_path), preload, *source)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
