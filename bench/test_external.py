"""A mimalloc-bench checkout, made of programs that lie around here."""

import shutil
from pathlib import Path

import pytest
from external import ExternalError, is_dynamic, works_of
from measure import RunError, measure, score_of
from peers import Allocator

SHELL = Path("/bin/sh")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    place = tmp_path / "out" / "bench"
    place.mkdir(parents=True)
    (tmp_path / "bench.sh").write_text("")
    return tmp_path


def test_what_is_no_checkout_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ExternalError, match="no built mimalloc-bench checkout"):
        works_of(tmp_path)


def test_a_checkout_without_programs_is_refused(checkout: Path) -> None:
    with pytest.raises(ExternalError, match="none of the programs"):
        works_of(checkout)


def test_programs_that_are_there_become_works(checkout: Path) -> None:
    for name in ("cfrac", "barnes", "larson"):
        shutil.copy(SHELL, checkout / "out" / "bench" / name)
    works = {work.name: work for work in works_of(checkout)}
    assert list(works) == ["cfrac", "barnes", "larsonN"]
    assert works["barnes"].input == checkout / "bench" / "barnes" / "input"
    assert works["cfrac"].text().startswith("cfrac 1754")
    assert [metric.key for metric in works["larsonN"].metrics] == ["score", "peak_kib"]


def test_a_script_cannot_be_preloaded(checkout: Path) -> None:
    script = checkout / "out" / "bench" / "cfrac"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    assert not is_dynamic(script)
    with pytest.raises(ExternalError, match="no dynamic program"):
        works_of(checkout)


def test_scores_are_found_in_what_the_programs_print(checkout: Path) -> None:
    for name in ("larson", "rptest", "xmalloc-test", "glibc-thread"):
        shutil.copy(SHELL, checkout / "out" / "bench" / name)
    printed = {
        "larsonN": "Throughput = 9 operations per second, relative time: 1.25s.\nDone\n",
        "rptestN": "Running 2 threads ...7000 memory ops/CPU second\n",
        "xmalloc-testN": "x\nrtime: 2.5, free/sec: 4\n",
        "glibc-thread": "1234\n",
    }
    found = {work.name: score_of(work, printed[work.name]) for work in works_of(checkout)}
    assert [scores["score"] for scores in found.values()] == [1.25, 7000, 2.5, 1234]
    with pytest.raises(RunError, match="nothing like"):
        score_of(next(iter(works_of(checkout))), "")


def test_a_program_runs_in_its_place_with_its_input(checkout: Path, tmp_path: Path) -> None:
    launcher = tmp_path / "build" / "bin" / "measure"
    launcher.parent.mkdir(parents=True)
    launcher.write_text(
        '#!/bin/sh\nshift\n"$@"\ncode=$?; echo usage wall_s=1 user_s=0.5 sys_s=0; exit $code\n'
    )
    launcher.chmod(0o755)
    shutil.copy(SHELL, checkout / "out" / "bench" / "barnes")
    source = checkout / "bench" / "barnes" / "input"
    source.parent.mkdir(parents=True)
    source.write_text('case $PWD in */out/bench) echo "usage of mine";; *) exit 3;; esac\n')
    (work,) = works_of(checkout)
    run = measure(tmp_path / "build", 0, work, Allocator("glibc", None))
    assert run.values["wall_s"] == 1.0
    source.write_text("exit 3\n")
    with pytest.raises(RunError, match="status 3"):
        measure(tmp_path / "build", 0, work, Allocator("glibc", None))
