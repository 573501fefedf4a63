"""Which small mistakes in the sources the tests notice.

Builds a copy of the project under build/mutants that holds all chosen mutants (mutations.py), then
runs for each the tests that reach its place, until one fails. What no test notices is listed in
docs/mutants.md beside the judgement in tools/mutant/judged.toml. The mutants that break a numbered
invariant (tools/mutant/invariants.toml) must all be noticed, and count apart.

A run that was stopped goes on where it was. After a change of the sources or tests it tries first
the test that killed a mutant the last time.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath
from threading import Lock
from typing import Any

import lint
from mutations import Mutation, chosen, mutant, mutations, rewrite

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "build/mutants"
TREE = FOLDER / "tree"
BUILD = FOLDER / "build"
REPORT = ROOT / "docs/mutants.md"
JUDGED = ROOT / "tools/mutant/judged.toml"
NAMED = ROOT / "tools/mutant/invariants.toml"
CHOICE = ROOT / "tools/mutant"
RECORD = FOLDER / "verdicts.jsonl"

COUNT = 300
LEAST_SHARE = 0.95
SUITES = ("unit", "api", "model")
# Compiled only where no C++ compiler is, or of use only in the hardened build.
NOT_BUILT = (
    "src/alloc/guarded.*",
    "src/override/nothrow.c",
    "src/slab/canary.*",
    "src/slab/secure.*",
    "src/slab/zero.*",
    "src/state/neighbours.*",
    "src/state/quarantine.*",
)
# Functions of use only there.
HARDENED = (
    "guard_set",
    "heap_quarantine",
    "is_quarantined",
    "tsl_detention_retry",
    "tsl_drained_try_guarded",
    "tsl_heap_close_empty",
    "tsl_heap_end_quarantine",
    "tsl_slab_wipe",
    "units_wipe",
    "wipe",
)
OPTIONS = (
    "-DTSLAB_DEBUG=2",
    "-DTSLAB_FAKE_TESTS=ON",
    "-DTSLAB_MODEL=ON",
    "-DTSLAB_WERROR=OFF",
    "-DTSLAB_BENCH=OFF",
    "-DTSLAB_EXAMPLES=OFF",
)
FLAGS = "-O1 -g -w"
# They test tests, or the same again in another form.
OTHERS = r"model\.mutant|api\.(?:fault|reference)\.|.*\.(?:archive|static)"
BUILT = r"\w+_test|api_\w+|model|tslab|tslab_preload"

# A test that takes longer is left out, and not waited for beyond the second.
MOST_SECONDS = 20.0
PATIENCE_SECONDS = 25.0
# A test that takes so much longer than without a mutant hangs.
HANG_TIMES = 6.0
HANG_SECONDS = 10.0
MOST_DATA_BYTES = 24 << 30

# What a verdict depends on.
JUDGES = ("CMakeLists.txt", "cmake/", "include/", "src/", "test/", "tools/lint.py", "tools/mut")


@dataclass(frozen=True)
class Test:
    """One entry of ctest."""

    name: str
    suite: str
    command: tuple[str, ...]
    folder: str
    environment: dict[str, str]
    wanted_output: str | None
    most_seconds: float

    def ends_well(self, extra: dict[str, str], most_seconds: float) -> bool:
        """Runs it, a hang being a failure."""
        process = subprocess.Popen(
            self.command,
            cwd=self.folder,
            env=os.environ | self.environment | extra,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            output, _ = process.communicate(timeout=most_seconds)
        except subprocess.TimeoutExpired:
            return False
        finally:
            end_session(process)
        if self.wanted_output is not None:
            return re.search(self.wanted_output, output.decode(errors="replace")) is not None
        return process.returncode == 0


def end_session(process: subprocess.Popen[bytes]) -> None:
    """Ends a test and what it started."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    process.wait()


def properties(entry: dict[str, Any]) -> dict[str, Any]:
    return {item["name"]: item["value"] for item in entry.get("properties", [])}


def test_of(entry: dict[str, Any]) -> Test | None:
    """The entry of ctest's listing, if it is one of our suites'."""
    known = properties(entry)
    suites = [suite for suite in SUITES if suite in known.get("LABELS", ())]
    if not suites or "command" not in entry or re.match(OTHERS, entry["name"]):
        return None
    wanted = known.get("PASS_REGULAR_EXPRESSION")
    return Test(
        name=entry["name"],
        suite=suites[0],
        command=tuple(entry["command"]),
        folder=known.get("WORKING_DIRECTORY", str(BUILD)),
        environment=dict(line.split("=", 1) for line in known.get("ENVIRONMENT", ())),
        wanted_output=wanted[0] if wanted else None,
        most_seconds=float(known.get("TIMEOUT", 60)),
    )


def listed_tests() -> list[Test]:
    listing = subprocess.run(
        ["ctest", "--show-only=json-v1"], cwd=BUILD, check=True, capture_output=True, text=True
    ).stdout
    found = (test_of(entry) for entry in json.loads(listing)["tests"])
    return [part for test in found if test is not None for part in parts_of(test)]


def parts_of(test: Test) -> Iterator[Test]:
    """The model's scenarios one by one: few reach a mutant. Other tests are whole."""
    if test.name != "model":
        yield test
        return
    for file in sorted((ROOT / "test/model").glob("*_scenarios.c")):
        for name in re.findall(r'\.name = "(.+?)"', file.read_text()):
            yield replace(test, name=f"model.{name}", command=(*test.command, name))


def sources(pattern: str) -> Iterator[str]:
    for path in sorted((ROOT / "src").glob("*/*.[ch]")):
        name = str(path.relative_to(ROOT))
        if fnmatch(name, pattern) and not any(fnmatch(name, other) for other in NOT_BUILT):
            yield name


def read(name: str) -> bytes:
    return (ROOT / name).read_bytes()


def write_if_new(path: Path, content: bytes) -> None:
    """Leaves what is the same alone, so that ninja does, too."""
    if not path.exists() or path.read_bytes() != content:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def project_files() -> list[str]:
    names = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, check=True, capture_output=True, text=True,
    ).stdout.split("\0")  # fmt: skip
    return [name for name in names if (ROOT / name).is_file()]


def tree_hash() -> str:
    """Tells one state of the code, its tests and its judges from another."""
    whole = hashlib.sha256()
    for name in sorted(project_files()):
        if name.startswith(JUDGES) and name != str(JUDGED.relative_to(ROOT)):
            whole.update(f"{name}\0".encode() + hashlib.sha256(read(name)).digest())
    return whole.hexdigest()


def copy_tree(numbered: dict[int, Mutation]) -> None:
    """The project with every chosen mutant in its sources."""
    by_file: dict[str, dict[int, Mutation]] = {}
    for number, mutation in numbered.items():
        by_file.setdefault(mutation.file, {})[number] = mutation
    for name in project_files():
        content = read(name)
        if name in by_file:
            content = b'#include "base/mutant.h"\n' + rewrite(content, by_file[name])
        write_if_new(TREE / name, content)
        shutil.copymode(ROOT / name, TREE / name)
    write_if_new(TREE / "src/base/mutant.h", (CHOICE / "choice.h").read_bytes())
    write_if_new(TREE / "src/base/mutant.c", (CHOICE / "choice.c").read_bytes())


def build() -> None:
    flags = [f"-DCMAKE_{language}_FLAGS_RELWITHDEBINFO={FLAGS}" for language in ("C", "CXX")]
    configure = ["cmake", "-G", "Ninja", "-S", str(TREE), "-B", str(BUILD), *OPTIONS, *flags]
    # The model's own mutants do not find their words in sources that were rewritten.
    done = subprocess.run(configure, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr)
    known = subprocess.run(
        ["ninja", "-C", str(BUILD), "-t", "targets", "all"],
        check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
    wanted = re.findall(rf"^({BUILT}): phony", known, re.MULTILINE)
    subprocess.run(["ninja", "-C", str(BUILD), "--quiet", *wanted], check=True)


@dataclass(frozen=True)
class Baseline:
    """A test without a mutant: how long it took, which mutants' places it reached."""

    test: Test
    seconds: float
    reached: frozenset[int]
    is_steady: bool = True

    @property
    def can_judge(self) -> bool:
        return self.is_steady and self.seconds < MOST_SECONDS

    @property
    def hangs_after(self) -> float:
        return min(self.test.most_seconds, HANG_SECONDS + HANG_TIMES * self.seconds)


def baseline(test: Test, most: int) -> Baseline:
    """Runs a test as it is, unless it is slow; two failures end everything."""
    file = FOLDER / "reached" / test.name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(bytes(most + 1))
    start = time.monotonic()
    passes = test.ends_well({"TSLAB_MUTANTS_REACHED": str(file)}, PATIENCE_SECONDS)
    seconds = time.monotonic() - start
    is_steady = passes or seconds >= PATIENCE_SECONDS
    if not is_steady and not test.ends_well({}, PATIENCE_SECONDS):
        sys.exit(f"mutants: {test.name} fails without any mutant")
    reached = (number for number, byte in enumerate(file.read_bytes()) if byte != 0)
    return Baseline(test, seconds, frozenset(reached), is_steady)


def noun(file: str) -> str:
    return PurePosixPath(file).stem


@dataclass(frozen=True)
class Verdict:
    """What happened to a mutant."""

    mutation: Mutation
    killer: str | None  # a suite, or lint
    test: str
    reached: bool


class Record:
    """The last verdict on each mutant, in a file that grows with each."""

    def __init__(self, path: Path, tree: str) -> None:
        self.path, self.tree = path, tree
        self.lock = Lock()
        lines = path.read_text().splitlines() if path.exists() else []
        self.last = {entry["rank"]: entry for entry in map(json.loads, lines)}

    def verdict(self, mutation: Mutation) -> Verdict | None:
        """What this very tree's tests said."""
        entry = self.last.get(mutation.rank)
        if entry is None or entry["tree"] != self.tree:
            return None
        return Verdict(mutation, entry["killer"], entry["test"], entry["reached"])

    def killer(self, mutation: Mutation) -> str:
        """The test that killed it the last time."""
        return str(self.last.get(mutation.rank, {"test": ""})["test"])

    def add(self, verdict: Verdict) -> None:
        entry: dict[str, Any] = {
            "rank": verdict.mutation.rank,
            "tree": self.tree,
            "killer": verdict.killer,
        }
        entry |= {"test": verdict.test, "reached": verdict.reached}
        with self.lock, self.path.open("a") as file:
            file.write(json.dumps(entry) + "\n")


def in_order(
    baselines: Iterable[Baseline], number: int, mutation: Mutation, killer: str = ""
) -> list[Baseline]:
    """The tests that reach a mutant: first its last killer, then the one beside its file, then the
    quick ones."""
    beside = {f"unit.{noun(mutation.file)}{end}" for end in ("_test", "_fake_test")}
    reaching = [baseline for baseline in baselines if number in baseline.reached]

    def place(one: Baseline) -> tuple[bool, bool, float]:
        return one.test.name != killer, one.test.name not in beside, one.seconds

    return sorted(reaching, key=place)


def complaints(file: str, content: bytes) -> int:
    """What the rules for atomics say of a file."""
    header = str(lint.ATOMIC_HEADER)
    texts = {header: read(header), file: content}
    tree = lint.Tree(
        tuple(
            lint.Source(PurePosixPath(name), tuple(text.decode().splitlines()))
            for name, text in texts.items()
        )
    )
    return len(list(lint.check_atomics(tree)))


def judge(number: int, mutation: Mutation, baselines: list[Baseline], killer: str = "") -> Verdict:
    """Looks for a test, or a rule, that notices a mutant."""
    source = read(mutation.file)
    if complaints(mutation.file, mutant(source, mutation)) > complaints(mutation.file, source):
        return Verdict(mutation, "lint", "tools/lint.py", True)
    reaching = in_order(baselines, number, mutation, killer)
    for one in reaching:
        if not one.test.ends_well({"TSLAB_MUTANT": str(number)}, one.hangs_after):
            return Verdict(mutation, one.test.suite, one.test.name, True)
    return Verdict(mutation, None, "", bool(reaching))


@dataclass(frozen=True)
class Judgement:
    """Why a mutant may live."""

    file: str
    function: str
    change: str
    equivalent: bool
    why: str
    nth: int = 1  # place of the function with this change


def judgements() -> dict[tuple[str, str, str, int], Judgement]:
    entries = tomllib.loads(JUDGED.read_text())["survivor"]
    found = [Judgement(**entry) for entry in entries]
    return {(one.file, one.function, one.change, one.nth): one for one in found}


def judgement_of(mutation: Mutation) -> Judgement | None:
    return judgements().get((mutation.file, mutation.function, mutation.change, mutation.nth))


def named(candidates: Iterable[Mutation]) -> dict[str, Mutation]:
    """By invariant, the mutant that breaks it."""
    places = {(one.file, one.function, one.change, one.nth): one for one in candidates}
    entries = tomllib.loads(NAMED.read_text())["mutant"]
    return {
        entry["invariant"]: places[
            entry["file"], entry["function"], entry["change"], entry.get("nth", 1)
        ]
        for entry in entries
    }


@dataclass(frozen=True)
class Tally:
    """Verdicts, counted."""

    verdicts: list[Verdict]

    @property
    def survivors(self) -> list[Verdict]:
        return [verdict for verdict in self.verdicts if verdict.killer is None]

    @property
    def unjudged(self) -> list[Verdict]:
        return [one for one in self.survivors if judgement_of(one.mutation) is None]

    @property
    def equivalent(self) -> int:
        found = (judgement_of(verdict.mutation) for verdict in self.survivors)
        return sum(one is not None and one.equivalent for one in found)

    @property
    def share(self) -> float:
        """Killed, of those that change what the program does."""
        able = len(self.verdicts) - self.equivalent
        return (len(self.verdicts) - len(self.survivors)) / able if able else 1.0


def row(name: str, tally: Tally) -> str:
    killers = Counter(verdict.killer for verdict in tally.verdicts)
    counts = [killers[suite] for suite in (*SUITES, "lint")]
    cells = [name, len(tally.verdicts), *counts, len(tally.survivors), tally.equivalent]
    return "| " + " | ".join(str(cell) for cell in cells) + f" | {tally.share:.1%} |"


def table(tally: Tally, name: str, key: str) -> Iterator[str]:
    yield f"| {name} | mutants | {' | '.join(SUITES)} | lint | lived | equivalent | killed |"
    yield "|---|" + "---:|" * (len(SUITES) + 5)
    groups: dict[str, list[Verdict]] = {}
    for verdict in tally.verdicts:
        group = verdict.mutation.rule if key == "rule" else verdict.mutation.file.split("/")[1]
        groups.setdefault(group, []).append(verdict)
    for group in sorted(groups):
        yield row(group, Tally(groups[group]))
    yield row("all", tally)


def survivor_lines(verdict: Verdict) -> Iterator[str]:
    mutation, judgement = verdict.mutation, judgement_of(verdict.mutation)
    unreached = "" if verdict.reached else ", reached by no test"
    yield f"- `{mutation.file}`, `{mutation.function}`, {mutation.rule}{unreached}:"
    yield f"  `{mutation.change}`."
    if judgement is not None:
        yield f"  {'Equivalent: ' if judgement.equivalent else ''}{judgement.why}"
    else:
        yield "  Not judged."


def invariant_lines(kept: dict[str, Verdict]) -> Iterator[str]:
    yield "| invariant | mutant | noticed by |"
    yield "|---|---|---|"
    for invariant, verdict in kept.items():
        change = verdict.mutation.change.replace("|", "\\|")
        place = f"`{verdict.mutation.file}`, `{verdict.mutation.function}`"
        yield f"| {invariant} | {place}: `{change}` | {verdict.test or 'nothing'} |"


def report(tally: Tally, kept: dict[str, Verdict]) -> str:
    lines = [
        "# Mutants",
        "",
        "`make mutants` changes the sources in one place at a time and runs the suites "
        f"`{'`, `'.join(SUITES)}` until a test fails. It writes this page.",
        "The rule for atomics (`tools/lint.py`) judges changes of a memory order: x86-64 orders "
        "them all.",
        "`killed` is the share of the mutants that are not equivalent to the code.",
        "",
        *table(tally, "rule", "rule"),
        "",
        *table(tally, "folder", "folder"),
        "",
        "## Invariants",
        "",
        "One mutant for each numbered invariant, beside the counts above.",
        "",
        *invariant_lines(kept),
        "",
        "## Survivors",
        "",
    ]
    for verdict in tally.survivors:
        lines += survivor_lines(verdict)
    return "\n".join(lines) + "\n"


def judge_once(
    number: int, mutation: Mutation, baselines: list[Baseline], record: Record
) -> Verdict:
    """The verdict of the record, or a new one that goes there."""
    known = record.verdict(mutation)
    if known is not None:
        return known
    verdict = judge(number, mutation, baselines, record.killer(mutation))
    record.add(verdict)
    return verdict


def limit_memory() -> None:
    resource.setrlimit(resource.RLIMIT_DATA, (MOST_DATA_BYTES, MOST_DATA_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def run(numbered: dict[int, Mutation], files: str, jobs: int) -> dict[Mutation, Verdict]:
    """Builds once, then judges every mutant of these files."""
    print(f"{len(numbered)} mutants of {len({one.file for one in numbered.values()})} files")
    record = Record(RECORD, tree_hash())
    copy_tree(numbered)
    build()
    limit_memory()
    with ThreadPoolExecutor(jobs) as pool:
        tests = listed_tests()
        every = list(pool.map(lambda test: baseline(test, max(numbered)), tests))
        baselines = [one for one in every if one.can_judge]
        left_out = [one.test.name for one in every if not one.can_judge]
        print(f"{len(baselines)} tests judge; too slow or unsteady: {left_out}", flush=True)
        wanted = {number: one for number, one in numbered.items() if fnmatch(one.file, files)}
        waiting = [
            pool.submit(judge_once, number, one, baselines, record)
            for number, one in wanted.items()
        ]
        verdicts = [told(future.result()) for future in waiting]
    return {verdict.mutation: verdict for verdict in verdicts}


def told(verdict: Verdict) -> Verdict:
    mutation = verdict.mutation
    fate = f"killed by {verdict.test}" if verdict.killer else "LIVES"
    if not verdict.reached:
        fate += ", reached by no test"
    place = f"{mutation.file}:{mutation.line} {mutation.function}"
    print(f"{place}: {mutation.change[:100]}: {fate}", flush=True)
    return verdict


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=COUNT)
    parser.add_argument("--files", default="*", help="only these, and no report")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    arguments = parser.parse_args()
    every = [one for name in sources("*") for one in mutations(name, read(name))]
    by_invariant = named(every)
    able = [one for one in every if one.function not in HARDENED]
    choice = chosen(able, arguments.count, list(by_invariant.values()))
    numbered = dict(enumerate([*choice, *by_invariant.values()], 1))
    verdicts = run(numbered, arguments.files, arguments.jobs)
    tally = Tally([verdicts[one] for one in choice if one in verdicts])
    kept = {name: verdicts[one] for name, one in by_invariant.items() if one in verdicts}
    if arguments.files == "*":
        REPORT.write_text(report(tally, kept))
    broken = [name for name, verdict in kept.items() if verdict.killer is None]
    for verdict in tally.unjudged:
        print("not judged:", *survivor_lines(verdict), sep="\n")
    print(f"invariants that no test keeps: {', '.join(broken) or 'none'}")
    print(f"{tally.share:.1%} killed, {len(tally.unjudged)} survivors not judged")
    return 0 if tally.share >= LEAST_SHARE and not tally.unjudged and not broken else 1


if __name__ == "__main__":
    sys.exit(main())
