"""The files of a table being measured: a row a run, and the plan, so that it can be resumed.

The plan lies beside the rows until every planned run has one: where it lies, the rows are
incomplete.
"""

import csv
import hashlib
import json
import platform
import shutil
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path

from environment import processor
from measure import Run
from peers import OURS, Allocator
from work import Work

ABOUT = ("round", "work", "command", "allocator", "version")


class RecordError(Exception):
    """Files that a run can neither begin nor go on with."""


def digest(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise RecordError(f"cannot read a program that is to be measured: {error}") from error


def program_of(build: Path, work: Work) -> Path:
    name = work.command[0]
    return Path(shutil.which(name) or name) if work.system else build / "bin" / name


@dataclass(frozen=True)
class Plan:
    """What is measured, on what. Two parts of one result must agree in all of it."""

    rounds: int
    allocators: list[str]
    works: dict[str, str]
    programs: dict[str, str]
    machine: dict[str, str]

    @staticmethod
    def of(
        build: Path, works: Sequence[Work], allocators: Sequence[Allocator], rounds: int
    ) -> "Plan":
        programs = {program_of(build, work) for work in works} | {build / "bin" / "measure"}
        libraries = {one.library for one in allocators if one.library is not None}
        return Plan(
            rounds,
            [one.name for one in allocators],
            {work.name: " ".join((work.text(), *work.writes)) for work in works},
            {path.name: digest(path) for path in sorted(programs | libraries)},
            {"processor": processor(), "kernel": platform.release()},
        )

    def differences(self, other: "Plan") -> list[str]:
        """The parts that differ; of programs and works those that do."""
        found = []
        for name, ours in asdict(self).items():
            theirs = getattr(other, name)
            if isinstance(ours, dict):
                keys = sorted(ours.keys() | theirs.keys())
                changed = [key for key in keys if ours.get(key) != theirs.get(key)]
                found += [f"{name} ({', '.join(changed)})"] if changed else []
            elif ours != theirs:
                found.append(f"{name} ({ours}, not {theirs})")
        return found


def load_runs(path: Path) -> list[Run]:
    """All runs of a file of rows; RecordError when it is none."""
    return parse_runs(path, path.read_text())


def parse_runs(path: Path, text: str) -> list[Run]:
    rows = list(csv.DictReader(StringIO(text), strict=True))
    try:
        return [run_of(row) for row in rows]
    except (KeyError, TypeError, ValueError) as error:
        raise RecordError(f"{path} has a row that is no run: {error}") from error


def run_of(row: dict[str, str]) -> Run:
    values = {key: float(text) for key, text in row.items() if key not in ABOUT and text != ""}
    return Run(int(row["round"]), row["work"], row["allocator"], row["version"], values)


def commands_of(path: Path) -> dict[str, str]:
    """What each work's own runs were started as."""
    with path.open(newline="") as file:
        return {
            row["work"]: row["command"] for row in csv.DictReader(file) if row["allocator"] == OURS
        }


class Record:
    """One row a run, written as it comes, so that an interruption loses nothing."""

    def __init__(self, folder: Path, table: str, keys: Sequence[str]) -> None:
        self.path = folder / f"{table}_runs.csv"
        self.plan_path = folder / f"{table}_plan.json"
        self.keys = list(keys)

    def begin(self, plan: Plan) -> list[Path]:
        """Starts anew. Incomplete rows that lie there are kept under the names returned."""
        aside = self.set_aside() if self.plan_path.exists() else []
        self.plan_path.write_text(json.dumps(asdict(plan), indent=2) + "\n")
        self.file = self.path.open("w", newline="")
        self.writer = csv.writer(self.file, lineterminator="\n")
        self.writer.writerow([*ABOUT, *self.keys])
        self.file.flush()
        return aside

    def set_aside(self) -> list[Path]:
        time = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%f")
        kept = []
        for path in (self.path, self.plan_path):
            if path.exists():
                kept.append(path.rename(path.with_name(f"{path.stem}.{time}{path.suffix}")))
        return kept

    def resume(self, plan: Plan) -> list[Run]:
        """Goes on behind the last whole row; the runs so far."""
        if not self.plan_path.exists():
            state = "is complete" if self.path.exists() else "does not exist"
            raise RecordError(f"nothing to resume: {self.path} {state}; leave out --resume")
        changed = plan.differences(self.planned())
        if changed:
            raise RecordError(
                f"cannot resume {self.path}: it was begun with other {'; '.join(changed)}."
                " Without --resume it is kept aside and all is measured anew"
            )
        text = self.path.read_text() if self.path.exists() else ""
        whole = text[: text.rfind("\n") + 1]
        header = ",".join([*ABOUT, *self.keys]) + "\n"
        if whole and not whole.startswith(header):
            raise RecordError(f"cannot resume {self.path}: its columns are others")
        runs = parse_runs(self.path, whole)
        self.file = self.path.open("a", newline="")
        self.file.truncate(len(whole.encode()))
        self.file.write("" if whole else header)
        self.file.flush()
        self.writer = csv.writer(self.file, lineterminator="\n")
        return runs

    def planned(self) -> Plan:
        try:
            return Plan(**json.loads(self.plan_path.read_text()))
        except (TypeError, ValueError) as error:
            raise RecordError(f"{self.plan_path} is no plan: {error}") from error

    def add(self, work: Work, run: Run) -> None:
        values = [run.values.get(key, "") for key in self.keys]
        command = work.text(run.allocator == OURS)
        self.writer.writerow([run.number, run.work, command, run.allocator, run.version, *values])
        self.file.flush()

    def end(self, complete: bool) -> None:
        with suppress(OSError):  # what could not be written was reported when it was to be
            self.file.close()
        if complete:
            self.plan_path.unlink()
