"""The runner from its command line, with a machine on which no program runs for real."""

import csv
import errno
import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import asleep
import measure
import pytest
import run
import written
from click.testing import CliRunner, Result
from measure import Run, RunError
from peers import OURS, TWINS, Allocator, all_allocators
from record import Record, load_runs
from show import warn_when_disturbed
from work import Work

ROUNDS = 4
PLANNED = ROUNDS * 2  # two works, one allocator


class Machine:
    """A build whose programs are texts, and what each run answers."""

    def __init__(self, folder: Path) -> None:
        self.build, self.output = folder / "build", folder / "results"
        (self.build / "bin").mkdir(parents=True)
        for name in ("bench_random_mixed", "measure", "churn_test"):
            (self.build / "bin" / name).write_text(name)
        self.done = 0
        self.stop_at = -1
        self.stop: BaseException = KeyboardInterrupt()
        self.rate = 10.0
        self.growth_pct = 0.5

    def measure(
        self, _build: Path, number: int, work: Work, one: Allocator, folder: Path | None = None
    ) -> Run:
        if self.done == self.stop_at:
            raise self.stop
        self.done += 1
        if folder is not None:
            header = written.HEADERS["rss_churn.csv"]
            (folder / "rows.csv").write_text(f"{header}\nlibc.so.6,0,1.5,,,\n")
        values = dict.fromkeys(("wall_s", "others_s", "steal_s"), 0.5)
        values |= {"rate": self.rate + number / 8, "growth_pct": self.growth_pct}
        return Run(number, work.name, one.name, "1", values)

    def bench(self, *arguments: str, table: str = "core") -> Result:
        only = ["--only", "churn_test"] if table == "suite" else []
        if table == "core":
            only = ["--only", "random_mixed_256", "--only", "random_mixed_100000"]
        return CliRunner().invoke(
            run.main,
            [
                table, "--build", str(self.build), "--output", str(self.output),
                "--rounds", str(ROUNDS), "--allocator", "glibc", *only, *arguments,
            ],
        )  # fmt: skip

    def rows(self) -> list[list[str]]:
        with (self.output / "core_runs.csv").open(newline="") as file:
            return list(csv.reader(file))[1:]


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    machine = Machine(tmp_path)
    monkeypatch.setattr(run, "measure", machine.measure)
    return machine


def interrupt(machine: Machine, after: int) -> Result:
    machine.stop_at = after
    stopped = machine.bench()
    machine.stop_at = -1
    return stopped


def test_a_whole_run_leaves_no_plan(machine: Machine) -> None:
    assert machine.bench().exit_code == 0
    assert len(machine.rows()) == PLANNED
    assert not (machine.output / "core_plan.json").exists()


def test_an_interruption_keeps_the_rows_and_says_how_to_go_on(machine: Machine) -> None:
    stopped = interrupt(machine, 3)
    assert stopped.exit_code == run.INTERRUPTED
    assert "--resume" in stopped.output
    assert len(machine.rows()) == 3


def test_resume_measures_the_rest_and_ends_as_if_never_interrupted(machine: Machine) -> None:
    machine.bench()
    whole = (machine.output / "core_runs.csv").read_text()
    summary = (machine.output / "core_summary.csv").read_text()
    interrupt(machine, machine.done + 5)
    machine.done = 0
    assert machine.bench("--resume").exit_code == 0
    assert machine.done == PLANNED - 5
    assert (machine.output / "core_runs.csv").read_text() == whole
    assert (machine.output / "core_summary.csv").read_text() == summary


def test_resume_drops_a_row_that_was_written_in_part(machine: Machine) -> None:
    interrupt(machine, 3)
    path = machine.output / "core_runs.csv"
    path.write_text(path.read_text()[:-7])
    machine.done = 0
    assert machine.bench("--resume").exit_code == 0
    assert machine.done == PLANNED - 2
    assert len(machine.rows()) == PLANNED


@pytest.mark.parametrize(
    ("change", "word"),
    [(["--rounds", "5"], "rounds"), (["--quick"], "works"), (["--only", "churn_128"], "works")],
)
def test_resume_refuses_another_plan(machine: Machine, change: list[str], word: str) -> None:
    (machine.build / "bin" / "churn_latency").write_text("x")
    interrupt(machine, 3)
    before = machine.rows()
    refused = machine.bench("--resume", *change)
    assert refused.exit_code == 1
    assert f"other {word}" in refused.output.replace("\n", " ") or word in refused.output
    assert machine.rows() == before


def test_resume_refuses_programs_that_were_built_anew(machine: Machine) -> None:
    interrupt(machine, 3)
    (machine.build / "bin" / "bench_random_mixed").write_text("another")
    refused = machine.bench("--resume")
    assert refused.exit_code == 1
    assert "programs (bench_random_mixed)" in refused.output


def test_resume_refuses_when_there_is_nothing(machine: Machine) -> None:
    assert "nothing to resume" in machine.bench("--resume").output
    machine.bench()
    assert "is complete" in machine.bench("--resume").output


def test_programs_that_change_meanwhile_are_told(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def rebuilding(*arguments: Any) -> Run:
        (machine.build / "bin" / "bench_random_mixed").write_text(f"build {machine.done}")
        return machine.measure(*arguments)

    monkeypatch.setattr(run, "measure", rebuilding)
    changed = machine.bench()
    assert changed.exit_code == 1
    assert "changed while it was measured: programs (bench_random_mixed)" in changed.output


def churn_on_ours(machine: Machine, *arguments: str) -> Result:
    """One bar: growth of at most 5 %."""
    library = machine.build / "lib" / "libtslab-preload.so"
    library.parent.mkdir(exist_ok=True)
    library.touch()
    return machine.bench("--allocator", OURS, *arguments, table="suite")


@pytest.mark.parametrize(
    ("growth_pct", "arguments", "status", "line"),
    [
        (5.1, [], 0, "missed 1 of 1 bars: churn_test growth_pct"),
        (5.1, ["--strict"], 1, "missed 1 of 1 bars: churn_test growth_pct"),
        (5.0, ["--strict"], 0, "met all of 1 bars"),
    ],
)
def test_a_missed_bar_is_told_last_and_fails_where_asked(
    machine: Machine, growth_pct: float, arguments: list[str], status: int, line: str
) -> None:
    machine.growth_pct = growth_pct
    done = churn_on_ours(machine, *arguments)
    assert (done.exit_code, done.output.splitlines()[-1]) == (status, line)


def test_strict_refuses_a_run_that_gives_no_verdict(machine: Machine) -> None:
    refused = churn_on_ours(machine, "--strict", "--rounds", "1")
    assert refused.exit_code == 2
    assert "one round gives none: --rounds 2" in refused.output


def test_an_incomplete_file_is_kept_aside(machine: Machine) -> None:
    interrupt(machine, 3)
    before = (machine.output / "core_runs.csv").read_text()
    again = machine.bench()
    assert again.exit_code == 0
    assert "kept an incomplete earlier file" in again.output
    (kept,) = machine.output.glob("core_runs.2*.csv")
    assert kept.read_text() == before


def test_a_failed_run_is_told_and_resume_tries_it_again(machine: Machine) -> None:
    machine.stop = RunError("no end")
    failed = interrupt(machine, 2)
    assert failed.exit_code == 1
    assert "no end" in failed.output
    machine.done = 0
    assert machine.bench("--resume").exit_code == 0
    assert machine.done == PLANNED - 2


def test_a_full_disk_ends_clearly_and_keeps_the_rows(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    add = Record.add

    def filling(record: Record, work: Work, one: Run) -> None:
        if one.number == 1:
            raise OSError(errno.ENOSPC, "No space left on device")
        add(record, work, one)

    monkeypatch.setattr(Record, "add", filling)
    full = machine.bench()
    assert full.exit_code == 1
    assert "No space left on device" in full.output
    assert "--resume" in full.output
    assert len(machine.rows()) == 2


def test_a_disk_that_is_full_from_the_start(machine: Machine) -> None:
    machine.output.mkdir()
    (machine.output / "core_runs.csv").symlink_to("/dev/full")
    full = machine.bench()
    assert full.exit_code == 1
    assert "No space left on device" in full.output


def test_files_of_programs_are_collected_also_behind_an_interruption(machine: Machine) -> None:
    machine.stop_at = 1
    machine.bench(table="suite")
    machine.stop_at = -1
    assert machine.bench("--resume", table="suite").exit_code in (0, 1)
    lines = (machine.output / "rss_churn.csv").read_text().splitlines()
    assert lines == [written.HEADERS["rss_churn.csv"], *["glibc,0,1.5,,,"] * ROUNDS]


def test_the_commit_told_is_the_one_that_the_run_began_with(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    commits = iter(["first", "second"])
    monkeypatch.setattr(run, "commit_of", lambda _root: next(commits))
    machine.bench()
    about = json.loads((machine.output / "core_environment.json").read_text())
    assert about["commit"] == "first"


def test_resume_refuses_when_files_of_runs_are_gone(machine: Machine) -> None:
    machine.stop_at = 1
    machine.bench(table="suite")
    base = written.folder_of(machine.build, machine.output, "suite")
    shutil.rmtree(base)
    machine.stop_at = -1
    gone = machine.bench("--resume", table="suite")
    assert gone.exit_code == 1
    assert "files are gone" in gone.output


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--only", "nonsense"], "no work nonsense"),
        (["--allocator", "nonsense"], "no allocator nonsense"),
        (["--rounds", "0"], "range"),
        (["--against", "nowhere"], "does not exist"),
    ],
)
def test_bad_arguments_end_with_status_2(
    machine: Machine, arguments: list[str], words: str
) -> None:
    refused = machine.bench(*arguments)
    assert refused.exit_code == 2
    assert words in refused.output


def test_parts_of_a_table_do_not_go_among_the_results(machine: Machine) -> None:
    options = {
        "build": machine.build, "rounds": 1, "only": (), "allocator": (), "quick": False,
        "resume": False, "strict": False, "against": None,
    }  # fmt: skip
    results, part = run.ROOT / "bench" / "results", machine.build / "bench-part"
    assert run.wish_of(None, **options).output == results
    assert run.wish_of(machine.output, **options).output == machine.output
    for left_out in ({"quick": True}, {"only": ("x",)}, {"allocator": ("glibc",)}):
        assert run.wish_of(None, **{**options, **left_out}).output == part


def test_a_glance_goes_without_twins_unless_they_are_named(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    able = [Allocator(name, None) for name in (OURS, "mimalloc", *TWINS)]
    monkeypatch.setattr(run, "allocators_of", lambda _table, _build: able)
    everybody = [allocator.name for allocator in able]
    options = ["--build", str(machine.build), "--output", str(machine.output), "--rounds", "1"]
    for arguments, names in (
        ([], everybody),
        (["--quick"], [OURS, "mimalloc"]),
        (["--quick", "--allocator", TWINS[0]], [TWINS[0]]),
    ):
        only = ["--only", "random_mixed_256"]
        done = CliRunner().invoke(run.main, ["core", *options, *only, *arguments])
        assert done.exit_code == 0, done.output
        runs = load_runs(machine.output / "core_runs.csv")
        assert sorted(one.allocator for one in runs) == sorted(names)


def test_twins_are_peers() -> None:
    assert set(TWINS) < {allocator.name for allocator in all_allocators(Path())}


def test_external_refuses_a_folder_that_is_no_checkout(machine: Machine, tmp_path: Path) -> None:
    refused = CliRunner().invoke(
        run.main, ["external", str(tmp_path), "--build", str(machine.build)]
    )
    assert refused.exit_code == 2
    assert "no built mimalloc-bench checkout" in refused.output


@pytest.mark.parametrize("arguments", [["--baseline", "nonsense"], ["--baseline"], ["--resume"]])
def test_run_all_refuses_bad_arguments_with_status_2(arguments: list[str]) -> None:
    script = run.ROOT / "bench" / "run_all.sh"
    done = subprocess.run([script, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "usage: bench/run_all.sh" in done.stderr


def test_what_is_observed_is_watched(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    builds: list[Path] = []

    @contextmanager
    def watched(build: Path, program: str) -> Iterator[SimpleNamespace]:
        assert program == "bench_random_mixed"
        builds.append(build)
        yield SimpleNamespace(scrapes=3)

    monkeypatch.setattr(run, "watched", watched)
    library = machine.build / "lib" / "libtslab-preload.so"
    library.parent.mkdir()
    library.touch()
    folders = ["--build", str(machine.build), "--output", str(machine.output)]
    only = ["--only", "observed_random_mixed_256", "--rounds", "1"]
    done = CliRunner().invoke(run.main, ["observed", *folders, *only])
    assert done.exit_code == 0, done.output
    runs = load_runs(machine.output / "observed_runs.csv")
    scrapes = {run.allocator: run.values.get("scrapes") for run in runs}
    assert scrapes == {"tslab": 3, "statistics": 3, "unobserved": None}
    assert builds == [machine.build, machine.build]


def test_an_allocator_has_an_environment_of_its_own() -> None:
    work = Work("w", ("env",), ("env",), (), "s")
    done = measure.start(["env"], work, Allocator("x", None, environment=(("TSLAB_STATS", "0"),)))
    assert "TSLAB_STATS=0\n" in done.stdout


LAUNCHER = """#!/bin/sh
case $1 in -) ALLOCATOR=libc.so.6 ;; *) ALLOCATOR=${1##*/} ;; esac
export ALLOCATOR
shift
"$@"
status=$?
echo usage wall_s=1 user_s=0 sys_s=0
exit $status
"""
SLEEPER = """#!/bin/sh
folder=${0%/*}
echo $$ >>"$folder/begun"
. "$folder/nap"
echo result allocator=$ALLOCATOR version=1 returned_0ms_pct=50
"""
# One of three; it fails when there is none left.
TAKE_A_BED = """
for bed in 1 2 3; do
  if mkdir "$folder/$bed" 2>/dev/null; then
    sleep 0.3
    rmdir "$folder/$bed"
    return
  fi
done
exit 3
"""
ASLEEP = 6  # two works, three allocators
# Until all are there; it fails when they do not come.
WAIT_FOR_ALL = f"""
for look in $(seq 3000); do
  if [ "$(wc -l <"$folder/begun")" -ge {ASLEEP} ]; then return; fi
  sleep 0.02
done
exit 3
"""


class Bedroom:
    """A build whose programs run for real: they do what `nap` says, and tell a result."""

    def __init__(self, folder: Path) -> None:
        self.build, self.output = folder / "build", folder / "results"
        self.bin = self.build / "bin"
        for name, text in (("measure", LAUNCHER), ("idle_return", SLEEPER)):
            self.put(self.bin / name, text).chmod(0o755)
        for name in ("lib/libtslab-preload.so", "peers/libpeer-jemalloc.so"):
            self.put(self.build / name, "")
        self.options = ["--build", str(self.build), "--output", str(self.output), "--rounds", "1"]
        for name in ("tslab", "glibc", "jemalloc"):
            self.options += ["--allocator", name]
        for name in ("idle_return", "idle_return_pinned"):
            self.options += ["--only", name]

    @staticmethod
    def put(path: Path, text: str) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def bench(self, nap: str, *arguments: str) -> Result:
        self.put(self.bin / "nap", nap)
        return CliRunner().invoke(run.main, ["suite", *self.options, *arguments])

    def start(self, nap: str) -> subprocess.Popen[str]:
        self.put(self.bin / "nap", nap)
        return subprocess.Popen(
            [sys.executable, run.__file__, "suite", *self.options],
            stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    def begun(self) -> list[str]:
        """The id of each process that began."""
        path = self.bin / "begun"
        return path.read_text().split() if path.exists() else []

    def rows(self) -> list[tuple[str, ...]]:
        path = self.output / "suite_runs.csv"
        if not path.exists():
            return []
        with path.open(newline="") as file:
            return [(row["work"], row["allocator"]) for row in csv.DictReader(file)]


@pytest.fixture
def bedroom(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bedroom:
    monkeypatch.setattr(asleep, "APART_S", 0.01)
    return Bedroom(tmp_path)


def wait_until(condition: Callable[[], bool]) -> None:
    end_s = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end_s
        time.sleep(0.02)


def runs_still(process: str) -> bool:
    try:
        state = Path("/proc", process, "stat").read_text().rsplit(")", 1)[1].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in "ZX"


def test_runs_that_sleep_do_so_side_by_side(bedroom: Bedroom) -> None:
    assert bedroom.bench(WAIT_FOR_ALL).exit_code == 0
    assert len(set(bedroom.rows())) == len(bedroom.rows()) == ASLEEP


def test_the_others_follow_one_after_the_other(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asleep, "APART_S", 0.01)
    (machine.build / "bin" / "idle_return").write_text("idle_return")
    assert machine.bench("--only", "idle_return", table="suite").exit_code in (0, 1)
    runs = load_runs(machine.output / "suite_runs.csv")
    works = [(one.work, one.number) for one in runs]
    assert sorted(works[:ROUNDS]) == [("idle_return", number) for number in range(ROUNDS)]
    assert works[ROUNDS:] == [("churn_test", number) for number in range(ROUNDS)]


def test_who_shares_the_processors_is_told_of_runs_awake_alone(
    capsys: pytest.CaptureFixture[str],
) -> None:
    works = [Work("awake", ("w",), ("w",), (), "s")]
    works.append(replace(works[0], name="asleep", asleep_mib=1))
    values = {"wall_s": 1.0, "others_s": 1.0, "steal_s": 0.0}
    warn_when_disturbed([Run(0, work.name, "glibc", "1", values) for work in works], works)
    assert "1 of 1 runs shared the processors" in capsys.readouterr().out


def test_no_more_sleep_at_once_than_may(bedroom: Bedroom, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asleep, "MOST_AT_ONCE", 3)
    assert bedroom.bench(TAKE_A_BED).exit_code == 0
    assert len(bedroom.rows()) == ASLEEP


def test_those_that_may_sleep_at_once_hold_half_of_what_is_free(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    work = Work("w", ("w",), ("w",), (), "s", asleep_mib=240)
    for free_mib, most in ((100_000, asleep.MOST_AT_ONCE), (4800, 10), (100, 1)):
        monkeypatch.setattr(asleep, "available_mib", lambda free_mib=free_mib: free_mib)
        assert asleep.how_many_at_once([work]) == most


def test_a_failed_run_among_those_asleep_is_told_and_resume_tries_it_again(
    bedroom: Bedroom,
) -> None:
    failed = bedroom.bench("[ $ALLOCATOR != libpeer-jemalloc.so ] || exit 3")
    assert failed.exit_code == 1
    for work in ("idle_return", "idle_return_pinned"):
        assert f"{work} on jemalloc: status 3" in failed.output
    assert len(bedroom.rows()) == ASLEEP - 2
    assert bedroom.bench(":", "--resume").exit_code == 0
    assert len(bedroom.begun()) == ASLEEP + 2
    assert len(set(bedroom.rows())) == len(bedroom.rows()) == ASLEEP


def test_an_interruption_ends_those_asleep_and_resume_repeats_none(bedroom: Bedroom) -> None:
    runner = bedroom.start("[ $ALLOCATOR = libc.so.6 ] || sleep 100")
    wait_until(lambda: len(bedroom.rows()) == 2 and len(bedroom.begun()) == ASLEEP)
    runner.send_signal(signal.SIGINT)
    said, _ = runner.communicate(timeout=60)
    assert runner.returncode == run.INTERRUPTED
    assert "--resume goes on" in said
    wait_until(lambda: not any(map(runs_still, bedroom.begun())))
    assert [name for _, name in bedroom.rows()] == ["glibc", "glibc"]
    assert bedroom.bench(":", "--resume").exit_code == 0
    assert len(bedroom.begun()) == ASLEEP + 4
    assert len(set(bedroom.rows())) == len(bedroom.rows()) == ASLEEP


def test_an_interruption_keeps_runs_that_ended_at_the_same_moment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(asleep, "APART_S", 0.0)
    ended: list[str] = []
    kept: list[str] = []

    def end(step: str) -> Run:
        ended.append(step)
        return Run(0, step, "", "", {})

    def settle(step: str, result: Callable[[], Run]) -> None:
        if not kept:
            wait_until(lambda: len(ended) == 3)
        kept.append(result().work)
        if len(kept) == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        asleep.Batch(["a", "b", "c"], end, 3).run(settle)
    assert sorted(kept) == ["a", "b", "c"]


def test_a_program_without_an_end_is_ended(
    bedroom: Bedroom, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measure, "TIMEOUT_S", 0.5)
    assert "no end within" in bedroom.bench("sleep 100").output
    wait_until(lambda: not any(map(runs_still, bedroom.begun())))
    assert bedroom.rows() == []


def test_the_time_left_counts_what_has_not_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    batch: asleep.Batch[str] = asleep.Batch(["a"] * 100, lambda _: Run(0, "", "", "", {}), 40)
    assert batch.left_s() is None
    monkeypatch.setattr(time, "monotonic", lambda: 70.0)
    batch.begun, batch.last_begun_s, batch.longest_s = 40, 20.0, 60.0
    assert batch.left_s() == 60 * 60 / 40 + 10
    batch.begun, batch.last_begun_s = 100, 0.0
    assert batch.left_s() == 0
