"""release.py on a small repository."""

from __future__ import annotations

import gzip
import hashlib
import io
import tarfile
from pathlib import Path

import pytest
import release

TEXTS = {
    "include/tslab.h": '#define TSLAB_VERSION "1.2.0"\n',
    "debian/changelog": "tslab (1.2.0-1) unstable; urgency=medium\n",
    "packaging/vcpkg/vcpkg.json": '{\n  "version": "1.2.0"\n}\n',
    "packaging/bazel/MODULE.bazel": 'module(\n    version = "1.2.0",\n)\n',
    "test/install/abi/libtslab.so.1.xml": "<abi/>\n",
    "test/install/abi/libtslab.so.1-1.2.0.xml": "<abi/>\n",
    "CHANGELOG.md": "# Changelog\n\n## 1.2.0 (2030-01-31)\n\n- News.\n",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in [*release.PLACES, *TEXTS]:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(TEXTS.get(name, '[package]\nversion = "1.2.0"\n'))
    release.git(tmp_path, "init", "--quiet")
    commit(tmp_path)
    return tmp_path


def commit(root: Path) -> None:
    release.git(root, "add", "--all")
    author = ["-c", "user.name=Nobody", "-c", "user.email=nobody@example.org"]
    release.git(root, *author, "commit", "--quiet", "--message", "All")


def test_every_file_of_this_repository_says_the_same_version() -> None:
    assert len(set(release.versions(release.ROOT).values())) == 1


def test_nothing_is_in_the_way_of_a_release_that_is_prepared(root: Path) -> None:
    assert list(release.obstacles(root, "1.2.0")) == []


def test_what_is_in_the_way_is_named(root: Path) -> None:
    (root / "python/pyproject.toml").write_text('version = "1.1.0"\n')
    (root / "CHANGELOG.md").write_text("## Unreleased (1.2.0)\n")
    (root / "test/install/abi/libtslab.so.1.xml").write_text("<abi changed='yes'/>\n")
    release.git(root, "tag", "v1.2.0")
    assert list(release.obstacles(root, "1.2.0")) == [
        "python/pyproject.toml says version 1.1.0",
        "CHANGELOG.md has no heading `## 1.2.0 (YEAR-MONTH-DAY)`",
        "the ABI of this release is not kept:"
        " test/install/abi.sh build/lib/libtslab.so --release 1.2.0",
        "git status: there are changes that are not committed",
        "there is a tag v1.2.0 already",
    ]


def test_the_tarball_has_what_is_committed_and_is_always_the_same(root: Path) -> None:
    (root / "left-over").write_text("x")
    folder = release.write(root, "1.2.0")
    packed = (folder / "tslab-1.2.0.tar.gz").read_bytes()
    assert packed == release.tarball(root, "1.2.0")
    with tarfile.open(fileobj=io.BytesIO(gzip.decompress(packed))) as archive:
        names = archive.getnames()
    assert "tslab-1.2.0/include/tslab.h" in names
    assert "tslab-1.2.0/left-over" not in names
    digest = hashlib.sha256(packed).hexdigest()
    assert (folder / "SHA256SUMS").read_text() == f"{digest}  tslab-1.2.0.tar.gz\n"
