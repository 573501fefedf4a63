"""The command's profiles of processes that run: do they name who allocates, and how much?

profile.py TSLAB PRELOAD SOURCE GROWER...

Each GROWER is a build of SOURCE, such as one with and one without frame pointers; one whose name
ends with "static" has the allocator in it, and is run without PRELOAD. What `pprof` makes of the
profiles is checked by `go tool pprof` where it is installed, else by the decoder below alone.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from command import first_line, process

HEADERS, NAMES, ENTRIES = 8000, 4000, 4000
LIVES, LIVED_MS, TURNS = 4000, 50, 16
BOUNDS_MS = [10, 100, 1000, 10_000, 100_000, 1_000_000, None]
SECONDS = 60
# With a sample in 4 KiB, an estimate of 1 MiB is 256 samples: a Poisson variable leaves 154..358
# once in 10^9 times. Each amount below is 1 MiB or more, and looked at less than a hundred times.
TOLERANCE = 0.4


def run(*command: str, status: int = 0, **more: Any) -> tuple[str, str]:
    """What a command says on its output and its error output."""
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=SECONDS * 3, **more
    )
    assert done.returncode == status, f"{command}: {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout, done.stderr


@contextmanager
def grower(command: list[str], preload: str, sample: str) -> Iterator[subprocess.Popen[str]]:
    """A process that is ready, and is ended if it did not end."""
    samples = {"TSLAB_SAMPLE_BYTES": sample, "TSLAB_SAMPLE_RATE": "0"}
    with process(*command, preload=preload, **samples) as child:
        assert first_line(child) == "ready\n"
        yield child


def varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        shift += 7
        at += 1
        if data[at - 1] < 0x80:
            return value, at


def fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The fields of a protocol buffer's message: numbers and bytes are all that profiles have."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        value, at = varint(data, at)
        assert key % 8 in (0, 2), key
        if key % 8 == 2:
            yield key // 8, data[at : at + value]
            at += value
        else:
            yield key // 8, value


def check_message(path: Path, program: str) -> None:
    """What every reader of profile.proto relies on."""
    message = list(fields(gzip.decompress(path.read_bytes())))
    strings = [bytes(value).decode() for number, value in message if number == 6]
    assert strings[0] == "", strings[:3]
    for name in ("inuse_space", "alloc_objects", "parse_header", "handle", "GET /upload"):
        assert name in strings, f"{name} in {strings}"
    assert "malloc" not in strings, "the allocator's own calls are left out"
    mapping = dict(fields(next(bytes(value) for number, value in message if number == 3)))
    assert strings[int(mapping[5])] == program, strings[int(mapping[5])]
    assert re.fullmatch(r"[0-9a-f]{16,}", strings[int(mapping[6])]), "the build id"
    types = [dict(fields(bytes(value))) for number, value in message if number == 1]
    assert [strings[int(of[1])] for of in types] == [
        "alloc_objects",
        "alloc_space",
        "inuse_objects",
        "inuse_space",
    ]


def lines_of(source: Path) -> dict[str, int]:
    """Where the source allocates, by function."""
    lines = enumerate(source.read_text().splitlines(), 1)
    found = ((re.search(r"// line: (\w+)", line), number) for number, line in lines)
    return {match[1]: number for match, number in found if match}


def check_near(value: float, expected: float) -> None:
    assert abs(value - expected) < TOLERANCE * expected, f"{value} instead of {expected}"


class Checks:
    """The command, on one build of the program."""

    def __init__(self, tslab: str, preload: str, source: Path, grower: str) -> None:
        self.tslab, self.preload = str(Path(tslab).resolve()), preload
        self.source, self.grower = source, str(Path(grower).resolve())
        self.lines = lines_of(source)

    def of(self, command: str, pid: str, *more: str, status: int = 0) -> str:
        return run(self.tslab, command, pid, *more, status=status)[0]

    def json(self, command: str, pid: str, *more: str, status: int = 0) -> Any:
        return json.loads(self.of(command, pid, *more, "--json", status=status))

    def check_leaks(self, pid: str) -> None:
        said = self.of("leaks", pid, "--after", "0", "--addresses", status=1)
        file, lines = re.escape(self.source.name), self.lines
        first = rf"128 B  {HEADERS}   parse_header  {file}:{lines['parse_header']} +<-  handle  "
        assert re.search(first, said), said
        second = rf"256 B  {NAMES}   copy_name +{file}:{lines['copy_name']} +<-  handle  "
        assert re.search(second, said), said
        assert re.search(r"at 0x[0-9a-f]+\n", said), said
        leak = self.json("leaks", pid, "--after", "0", status=1)["leaks"][0]
        stack = leak["stacks"][0]
        functions = [call["function"] for call in stack["calls"]]
        assert functions[:2] == ["parse_header", "handle"], functions
        assert "main" in functions, functions
        assert stack["percent"] == 100, stack
        check_near(stack["estimated_objects"], HEADERS)

    def check_amounts(self, pid: str) -> None:
        samples = self.json("profile", pid)["samples"]
        live: dict[str, int] = {}
        allocated: dict[str, int] = {}
        for sample in samples:
            leaf = sample["stack"][0]
            live[leaf] = live.get(leaf, 0) + sample["bytes"]
            allocated[leaf] = allocated.get(leaf, 0) + sample["alloc_bytes"]
        check_near(live["parse_header"], HEADERS * 128)
        check_near(live["copy_name"], NAMES * 256)
        check_near(allocated["cache_entry"], ENTRIES * 512)
        check_near(live["cache_entry"], ENTRIES // 2 * 512)
        check_near(live["read_body"], 4 << 20)
        stacks = {tuple(sample["stack"]): sample for sample in samples if sample["bytes"]}
        header = next(value for stack, value in stacks.items() if stack[0] == "parse_header")
        assert header["epoch"] == "GET /upload", header
        assert header["epoch_id"] > 0, header
        assert header["class_bytes"] == 128, header
        body = next(value for stack, value in stacks.items() if stack[0] == "read_body")
        assert body["class_bytes"] is None, body
        assert body["epoch_id"] == 0, body

    def check_lifetimes(self, pid: str) -> None:
        rows = {row["stack"][0]: row for row in self.json("profile", pid)["lifetimes"]}
        scratch, session = rows["use_scratch"], rows["open_session"]
        check_near(scratch["objects"], LIVES)
        check_near(session["bytes"], LIVES * 2048)
        # On a busy machine some temporaries are interrupted; the clock has steps of 4 ms.
        assert scratch["temporary_percent"] >= 80, scratch
        assert session["temporary_objects"] == 0, session
        assert scratch["mean_lifetime_ms"] < LIVED_MS / 2, scratch
        assert session["mean_lifetime_ms"] >= LIVED_MS - 10, session
        self.check_decades(scratch, session, rows["cache_entry"])
        lines = self.of("profile", pid, "--lifetimes").splitlines()
        assert re.search(r"^ +OBJECTS +BYTES +0-10ms  10-100ms .* MEDIAN +MEAN +CLASS ", lines[0])
        of_scratch = r"MiB +(100|[89]\d) % .* < 10 ms +\d+ ms +1024 B +\"default\" +use_scratch"
        assert re.search(r"^freed .* " + of_scratch, lines[1]), lines
        stays = [line for line in lines if "  cache_entry" in line]
        assert len(stays) == 1, "none of them was freed"
        assert re.match(r"live +\d+ +\d[.\d]* MiB +\d+ % .* 512 B ", stays[0]), stays

    def check_decades(self, scratch: Any, session: Any, entry: Any) -> None:
        def decades(of: Any) -> list[int]:
            assert [decade["below_ms"] for decade in of["by_decade"]] == BOUNDS_MS, of
            return [decade["objects"] for decade in of["by_decade"]]

        assert decades(scratch)[0] == scratch["temporary_objects"], scratch
        assert scratch["median_below_ms"] == BOUNDS_MS[0], scratch
        assert scratch["live"]["objects"] == 0, scratch
        # A turn that is interrupted may last longer than 100 ms.
        assert decades(session)[0] == 0, session
        check_near(sum(decades(session)[1:3]), LIVES)
        assert session["median_below_ms"] in BOUNDS_MS[1:3], session
        assert entry["objects"] == 0, entry
        assert entry["mean_lifetime_ms"] is None, entry
        check_near(entry["live"]["objects"], ENTRIES)
        assert decades(entry["live"])[:2] == [0, 0], entry
        assert entry["live"]["mean_age_ms"] >= TURNS * LIVED_MS - 10, entry

    def check_files(self, pid: str, folder: str) -> None:
        said, _ = run(self.tslab, "profile", pid, cwd=folder)
        path = Path(folder, f"tslab.{pid}.1.pb.gz")
        assert f"wrote {path.name}: " in said, said
        assert path.stat().st_mode & 0o777 == 0o600
        check_message(path, self.grower)
        run(self.tslab, "profile", pid, cwd=folder)
        assert Path(folder, f"tslab.{pid}.2.pb.gz").exists(), "what was written before stays"
        folded = self.of("profile", pid, "--format", "folded", "-o", "-")
        assert re.search(r"^.*main;.*handle;parse_header \d+$", folded, re.MULTILINE), folded
        legacy = Path(folder, "heap")
        self.of("profile", pid, "--format", "heap_v2", "-o", str(legacy))
        assert " @ heap_v2/4096\n" in legacy.read_text()
        if shutil.which("go") is not None:
            self.check_with_go(path, legacy)

    def check_served(self, pid: str, folder: str) -> None:
        """Where collectors of profiles look for one."""
        path = Path(folder, "served.pb.gz")
        name = self.json("stats", pid)["name"]
        with self.server() as address:
            for query in (f"process={name}", f"pid={pid}"):
                path.write_bytes(served(f"{address}debug/pprof/heap?{query}"))
                check_message(path, self.grower)

    @contextmanager
    def server(self) -> Iterator[str]:
        with subprocess.Popen(
            [self.tslab, "serve", "--history", "none", "--listen", "127.0.0.1:0"],
            stderr=subprocess.PIPE,
            text=True,
        ) as child:
            try:
                assert child.stderr is not None
                yield child.stderr.readline().removeprefix("tslab: serving ").strip()
            finally:
                child.terminate()

    def check_part_served(self, pid: str, sampled: str) -> None:
        """A profile of a part says so, whoever collects it."""
        with self.server() as address:
            told = json.loads(served(f"{address}api/v1/processes/{pid}/profile"))
            message = gzip.decompress(served(f"{address}debug/pprof/heap?pid={pid}"))
        assert (told["sampled"], told["partial"]) == (sampled, True), told
        assert any("parse_header" in sample["stack"] for sample in told["samples"]), told
        strings = [bytes(value).decode() for number, value in fields(message) if number == 6]
        assert {"sampled", sampled} <= set(strings), strings
        assert any(text.startswith(f"process {pid} ") for text in strings), strings

    def check_with_go(self, path: Path, legacy: Path) -> None:
        top = self.pprof("-top", str(path))
        assert "Type: inuse_space" in top, top
        for function in ("read_body", "parse_header"):
            assert re.search(rf"[1-9][.\d]*[kM]B .*{function}", top), top
        assert "GET /upload" in self.pprof("-tags", "-sample_index=inuse_objects", str(path))
        # Of programs that are not written in Go, this reader names no functions by itself.
        top = self.pprof("-top", self.grower, str(legacy))
        assert "Type: inuse_space" in top, top
        assert re.search(rf"[1-9][.\d]*[kM]B .*\[{Path(self.grower).name}\]", top), top

    @staticmethod
    def pprof(*arguments: str) -> str:
        return run("go", "tool", "pprof", *arguments)[0]

    def check_copy(self, pid: str, folder: str) -> None:
        original = next(Path("/dev/shm").glob(f"tslab.{pid}.*"))
        copy = Path(folder, "copy")
        shutil.copyfile(original, copy)
        said, notes = run(self.tslab, "profile", str(copy), "--json")
        samples = json.loads(said)["samples"]
        assert all(name.startswith("0x") for name in samples[0]["stack"]), said
        assert "functions are not named" in notes, notes
        if self.preload:
            # Its names are not known, but the file says where the library lies.
            headers = {
                tuple(sample["stack"])
                for sample in samples
                if sample["class_bytes"] == 128 and sample["bytes"] > 0
            }
            assert len(headers) == 1, headers

    def sample_bytes(self, pid: str) -> int:
        return int(self.json("stats", pid)["process"]["sample_bytes"])

    def wait_for_samples(self, pid: str) -> None:
        ends = time.monotonic() + SECONDS
        while self.json("stats", pid)["process"]["samples_taken"] == 0:
            assert time.monotonic() < ends, "no label is watched"
            time.sleep(0.05)

    def wait_until_off(self, pid: str) -> None:
        ends = time.monotonic() + SECONDS
        while self.sample_bytes(pid) != 0:
            assert time.monotonic() < ends, "the process goes on sampling"
            time.sleep(0.05)

    def check_asked(self, pid: str) -> None:
        said, notes = run(self.tslab, "profile", pid, "--seconds", "2", "--bytes", "4K", "--json")
        assert "for 2 s, a byte in 4.0 KiB" in notes, notes
        leaves = {sample["stack"][0] for sample in json.loads(said)["samples"]}
        assert {"parse_header", "cache_entry"} <= leaves, leaves
        self.wait_until_off(pid)

    def check_kept(self, pid: str) -> None:
        notes = run(self.tslab, "profile", pid, "--seconds", "1", "--keep", "--json")[1]
        assert "for 1 s, a byte in 512.0 KiB" in notes, notes
        assert self.sample_bytes(pid) == 512 << 10, self.sample_bytes(pid)
        so_far = (self.tslab, "profile", pid, "--seconds", "0", "-o", os.devnull)
        notes = run(*so_far)[1]
        assert "ago there are samples of a part at most" in notes, notes
        self.of("profile", pid, "--stop", "-o", os.devnull)
        self.wait_until_off(pid)
        notes = run(*so_far)[1]
        assert f"process {pid} has sampled nothing for " in notes, notes

    def check_interrupted(self, pid: str) -> None:
        command = [self.tslab, "profile", pid, "--seconds", "600", "-o", os.devnull]
        child = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        ends = time.monotonic() + SECONDS
        while self.sample_bytes(pid) == 0:
            assert time.monotonic() < ends, "the process does not sample"
            time.sleep(0.05)
        child.send_signal(signal.SIGINT)
        said, _ = child.communicate(timeout=SECONDS)
        assert child.returncode == 0, child.returncode
        assert f"wrote {os.devnull}: " in said, said
        self.wait_until_off(pid)


def served(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=SECONDS) as answer:
        is_json = answer.headers["content-type"] == "application/json"
        assert is_json == ("/api/" in url), url
        said: bytes = answer.read()
        return said


def check_stripped(checks: Checks) -> None:
    """The allocator's calls are left out where neither they nor its file have a name of its own."""
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder, "allocator.so")
        run("strip", "-o", str(library), checks.preload)
        with grower([checks.grower, "once"], str(library), "4K") as child:
            checks.check_leaks(str(child.pid))
            checks.check_amounts(str(child.pid))


def wait_for_file(pid: str) -> None:
    """Processes tell nothing of themselves while they are young."""
    ends = time.monotonic() + SECONDS
    while not list(Path("/dev/shm").glob(f"tslab.{pid}.*")):
        assert time.monotonic() < ends, "the process has no statistics file"
        time.sleep(0.05)


def check(checks: Checks) -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        grower([checks.grower, "once"], checks.preload, "4K") as child,
    ):
        pid = str(child.pid)
        checks.check_leaks(pid)
        checks.check_amounts(pid)
        checks.check_files(pid, folder)
        checks.check_served(pid, folder)
        checks.check_copy(pid, folder)
    with grower([checks.grower, "lives"], checks.preload, "4K") as child:
        checks.check_lifetimes(str(child.pid))
    with grower([checks.grower, "on"], checks.preload, "0") as child:
        pid = str(child.pid)
        wait_for_file(pid)
        checks.wait_for_samples(pid)
        checks.check_part_served(pid, "watched")
        checks.check_asked(pid)
        checks.check_kept(pid)
        checks.check_interrupted(pid)
        checks.of("profile", pid, "--stop", "-o", os.devnull)
        checks.wait_until_off(pid)
        checks.check_part_served(pid, "ended")


def main(tslab: str, preload: str, source: str, *growers: str) -> int:
    with_go = shutil.which("go") is not None
    print(f"profiles are read by {'go tool pprof and ' if with_go else ''}the test's own decoder")
    for grower in growers:
        library = "" if grower.endswith("static") else preload
        checks = Checks(tslab, library, Path(source), grower)
        check(checks)
        if library:
            check_stripped(checks)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
