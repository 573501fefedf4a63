"""Which commit of the sources was measured."""

import subprocess
from pathlib import Path

import environment
import pytest

PERSON = ("-c", "user.name=x", "-c", "user.email=x@example.com", "-c", "commit.gpgsign=false")
FILES = ("README.md", "bench/results/a.csv", "docs/results.md", "docs/images/a.png")


def git(root: Path, *arguments: str) -> str:
    command = ["git", "-C", str(root), *PERSON, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def put(root: Path, name: str, text: str) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    # A hook of the project's own repository must not lead here.
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"):
        monkeypatch.delenv(name, raising=False)
    git(tmp_path, "init", "--quiet")
    for name in FILES:
        put(tmp_path, name, "old")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--quiet", "--message", "x")
    return tmp_path


def test_the_commit_is_named(root: Path) -> None:
    assert environment.commit_of(root) == git(root, "rev-parse", "HEAD")[:12]


def test_results_and_files_that_git_does_not_know_are_no_changes(root: Path) -> None:
    for name in (*FILES[1:], "notes.txt"):
        put(root, name, "new")
    assert environment.commit_of(root) == git(root, "rev-parse", "HEAD")[:12]


@pytest.mark.parametrize("staged", [False, True])
def test_changes_of_sources_are_marked(root: Path, staged: bool) -> None:
    put(root, "README.md", "new")
    if staged:
        git(root, "add", ".")
    assert environment.commit_of(root) == f"{git(root, 'rev-parse', 'HEAD')[:12]} with changes"


def test_sources_below_another_repository_have_no_commit(root: Path) -> None:
    put(root, "unpacked/README.md", "old")
    assert environment.commit_of(root / "unpacked") == "unknown"


def test_before_the_first_commit_it_is_unknown(root: Path) -> None:
    git(root, "update-ref", "-d", "HEAD")
    assert environment.commit_of(root) == "unknown"


def test_without_git_it_is_unknown(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert environment.commit_of(root) == "unknown"
