"""Makes a release of the commit that is checked out: tarball, checksums, tag.

    release.py VERSION [--no-tag]

Every file that says the version has to say this one, CHANGELOG.md has to date it, nothing may be
uncommitted, and the library has to have the ABI that is kept, as this release's and otherwise, and
to serve programs that were linked to earlier releases (test/install/abi.sh). The tarball is the
same, byte by byte, whoever makes it.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PLACES = {
    "include/tslab.h": r'#define TSLAB_VERSION "(.+)"',
    "tools/tslab/Cargo.toml": r'^version = "(.+)"',
    "rust/Cargo.toml": r'^version = "(.+)"',
    "python/pyproject.toml": r'^version = "(.+)"',
    "debian/changelog": r"^tslab \((.+)-\d+\)",
    "packaging/vcpkg/vcpkg.json": r'^  "version": "(.+)"',
    "packaging/bazel/MODULE.bazel": r'^    version = "(.+)"',
}


def versions(root: Path) -> dict[str, str]:
    """The version that each file says."""
    found = {}
    for name, pattern in PLACES.items():
        match = re.search(pattern, (root / name).read_text(), re.MULTILINE)
        found[name] = match[1] if match else "none"
    return found


def git(root: Path, *arguments: str) -> bytes:
    return subprocess.run(["git", *arguments], cwd=root, check=True, capture_output=True).stdout


def obstacles(root: Path, version: str) -> Iterator[str]:
    """What has to be done before the release."""
    for name, said in versions(root).items():
        if said != version:
            yield f"{name} says version {said}"
    heading = rf"^## {re.escape(version)} \(\d{{4}}-\d\d-\d\d\)$"
    if not re.search(heading, (root / "CHANGELOG.md").read_text(), re.MULTILINE):
        yield f"CHANGELOG.md has no heading `## {version} (YEAR-MONTH-DAY)`"
    if not abi_is_kept(root, version):
        command = f"test/install/abi.sh build/lib/libtslab.so --release {version}"
        yield f"the ABI of this release is not kept: {command}"
    if git(root, "status", "--porcelain"):
        yield "git status: there are changes that are not committed"
    if git(root, "tag", "--list", f"v{version}"):
        yield f"there is a tag v{version} already"


def abi_is_kept(root: Path, version: str) -> bool:
    """Whether later releases will be compared with this one."""
    soname = f"libtslab.so.{version.partition('.')[0]}"
    files = [root / f"test/install/abi/{name}.xml" for name in (soname, f"{soname}-{version}")]
    return all(file.exists() for file in files) and len({file.read_bytes() for file in files}) == 1


def has_its_abi(root: Path) -> bool:
    """Whether the library that make build left has the ABI that is kept."""
    check = [root / "test/install/abi.sh", root / "build/lib/libtslab.so"]
    return subprocess.run(check, check=False).returncode == 0


def tarball(root: Path, version: str) -> bytes:
    """The sources as they are committed. gzip's header has no time and no name."""
    archive = git(root, "archive", f"--prefix=tslab-{version}/", "HEAD")
    return gzip.compress(archive, mtime=0)


def write(root: Path, version: str) -> Path:
    """Writes the tarball and its checksum; returns their folder."""
    folder = root / "build/release"
    folder.mkdir(parents=True, exist_ok=True)
    packed = tarball(root, version)
    name = f"tslab-{version}.tar.gz"
    (folder / name).write_bytes(packed)
    (folder / "SHA256SUMS").write_text(f"{hashlib.sha256(packed).hexdigest()}  {name}\n")
    return folder


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("version")
    parser.add_argument("--no-tag", action="store_true")
    arguments = parser.parse_args()
    found = list(obstacles(ROOT, arguments.version))
    if not found and not has_its_abi(ROOT):
        found = ["the ABI is not what is kept: run make build, then test/install/abi.sh"]
    for obstacle in found:
        print(f"release: {obstacle}", file=sys.stderr)
    if found:
        return 1
    print(f"wrote {write(ROOT, arguments.version).relative_to(ROOT)}")
    if not arguments.no_tag:
        git(ROOT, "tag", "--annotate", f"v{arguments.version}", "-m", f"tslab {arguments.version}")
        print(f"tagged v{arguments.version}; push it with: git push origin v{arguments.version}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
