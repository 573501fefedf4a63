"""The runner from its command line, with a machine on which no program runs for real."""

import csv
import errno
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import run
import written
from click.testing import CliRunner, Result
from measure import Run, RunError
from peers import Allocator
from record import Record
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

    def measure(
        self, _build: Path, number: int, work: Work, one: Allocator, folder: Path | None = None
    ) -> Run:
        if self.done == self.stop_at:
            raise self.stop
        self.done += 1
        if folder is not None:
            header = written.HEADERS["rss_churn.csv"]
            (folder / "rows.csv").write_text(f"{header}\nlibc.so.6,0,1.5,,,\n")
        values = dict.fromkeys(("wall_s", "others_s", "steal_s", "growth_pct"), 0.5)
        return Run(number, work.name, one.name, "1", {**values, "rate": self.rate + number / 8})

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
        "resume": False, "against": None,
    }  # fmt: skip
    results, part = run.ROOT / "bench" / "results", machine.build / "bench-part"
    assert run.wish_of(None, **options).output == results
    assert run.wish_of(machine.output, **options).output == machine.output
    for left_out in ({"quick": True}, {"only": ("x",)}, {"allocator": ("glibc",)}):
        assert run.wish_of(None, **{**options, **left_out}).output == part


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
