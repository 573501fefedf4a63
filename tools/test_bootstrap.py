"""tools/bootstrap on machines that lack things, with an apt-get that only takes notes."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

BOOTSTRAP = Path(__file__).with_name("bootstrap")
NEEDED = ("bash", "comm", "dirname", "env", "sed", "sort")


@dataclass(frozen=True)
class Machine:
    """A PATH of its own. The group `demo` wants redis-server and redis-benchmark, and no Python."""

    programs: Path
    notes: Path

    def add(self, name: str, script: str = "") -> None:
        program = self.programs / name
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)

    def bootstrap(self, *groups: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "PATH": str(self.programs), "NOTES": str(self.notes)}
        return subprocess.run(
            [BOOTSTRAP, *groups], env=environment, capture_output=True, text=True, check=False
        )


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in NEEDED:
        found = shutil.which(name)
        assert found is not None
        (programs / name).symlink_to(found)
    machine = Machine(programs, tmp_path / "notes")
    machine.add("sudo", 'exec "$@"')
    return machine


def test_silent_when_nothing_is_missing(machine: Machine) -> None:
    machine.add("redis-server")
    machine.add("redis-benchmark")
    machine.add("apt-get", "exit 1")
    done = machine.bootstrap("demo")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_installs_what_is_missing_and_nothing_else(machine: Machine) -> None:
    machine.add("redis-server")
    machine.add("apt-get", 'echo "$@" >>"$NOTES"')
    assert machine.bootstrap("demo").returncode == 0
    update, install = machine.notes.read_text().splitlines()
    assert update.endswith(" update")
    assert install.endswith(" install -y --no-install-recommends redis-tools")


def test_packages_without_a_program_are_asked_for_by_name(machine: Machine) -> None:
    machine.add(
        "dpkg-query", "echo installed libjemalloc2; echo not-installed libmimalloc2.0; exit 1"
    )
    machine.add("apt-get", 'echo "$@" >>"$NOTES"')
    assert machine.bootstrap("bench").returncode == 0
    install = machine.notes.read_text().splitlines()[1]
    assert install.endswith(" libmimalloc2.0 libtalloc-dev libtcmalloc-minimal4")


def test_an_update_that_fails_does_not_stop_the_installation(machine: Machine) -> None:
    machine.add("apt-get", 'case "$*" in *update) exit 100;; esac')
    done = machine.bootstrap("demo")
    assert done.returncode == 0
    assert "going on with the lists at hand" in done.stderr


def test_a_failed_installation_says_what_to_do(machine: Machine) -> None:
    machine.add("apt-get", "exit 100")
    done = machine.bootstrap("demo")
    assert done.returncode == 1
    assert "by hand: apt-get install redis-server redis-tools" in done.stderr


def test_a_system_without_apt_says_what_it_lacks(machine: Machine) -> None:
    done = machine.bootstrap("demo")
    assert done.returncode == 1
    assert "no apt-get here; install the equivalents of: redis-server redis-tools" in done.stderr


def test_an_unknown_group_is_an_error(machine: Machine) -> None:
    done = machine.bootstrap("nonsense")
    assert done.returncode == 1
    assert "no group 'nonsense'" in done.stderr
