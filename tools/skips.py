"""What a test run left out, and why.

    skips.py forget    before the run
    skips.py tell      after it: lists the skipped tests of all presets with their reasons; fails
                       when one could have run on this machine

Expects ctest's results in build/skips/PRESET.xml. A test gives its reason in a line "skipped: ...".
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

FOLDER = Path(__file__).resolve().parent.parent / "build/skips"


def is_root() -> bool:
    return os.geteuid() == 0


def has_packages() -> bool:
    """Whether tools/bootstrap could have installed it."""
    return shutil.which("apt-get") is not None


def honours_set_user_id() -> bool:
    return not os.statvfs(tempfile.gettempdir()).f_flag & os.ST_NOSUID


def may_gain_privileges() -> bool:
    return "NoNewPrivs:\t0" in Path("/proc/self/status").read_text()


def has_seccomp() -> bool:
    return Path("/proc/sys/kernel/seccomp/actions_avail").exists()


def is_x86_64() -> bool:
    return platform.machine() == "x86_64"


def never() -> bool:
    """What no setting of the machine changes."""
    return False


# What a reason looks like, and whether the machine could run the test all the same.
REASONS: tuple[tuple[str, Callable[[], bool]], ...] = (
    (r"only root can", is_root),
    (r"the temporary folder ignores set-user-ID", honours_set_user_id),
    (r"set-user-ID has no effect here", may_gain_privileges),
    (r"seccomp filters are not available here", has_seccomp),
    (r"written for x86-64", is_x86_64),
    (r"not installed: |there is no prometheus here", has_packages),
    (r"no Python here (has its test suite|is 3\.\d+ or later)", never),
    (r"no core dump here; ", has_packages),
    (r"not in the toolchain: ", never),
    (r"the C library has no makecontext", never),
)


@dataclass(frozen=True)
class Skip:
    """A test that did not run."""

    preset: str
    test: str
    reason: str

    def complaint(self) -> str | None:
        """Why the reason does not hold."""
        for pattern, could_run in REASONS:
            if re.match(pattern, self.reason):
                return "it could run here" if could_run() else None
        return "tools/skips.py does not know this reason"

    def __str__(self) -> str:
        return f"{self.preset}: {self.test}: {self.reason}"


def skips_in(preset: str, text: str) -> Iterator[Skip]:
    """The skipped tests of one ctest run."""
    for case in ElementTree.fromstring(text).iter("testcase"):
        if case.find("skipped") is not None:
            output = case.findtext("system-out") or ""
            told = re.search(r"^skipped: (.+)$", output, re.MULTILINE)
            yield Skip(preset, case.get("name", ""), told[1] if told else "it gives no reason")


def forget() -> int:
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    return 0


def tell() -> int:
    files = sorted(FOLDER.glob("*.xml"))
    if not files:
        print(f"skips: no results in {FOLDER}; run: make test", file=sys.stderr)
        return 1
    skips = [skip for file in files for skip in skips_in(file.stem, file.read_text())]
    print(f"== skipped: {len(skips)}")
    failures = 0
    for skip in skips:
        complaint = skip.complaint()
        failures += complaint is not None
        print(f"{skip}{f' (FAILED: {complaint})' if complaint else ''}")
    return 1 if failures else 0


def main() -> int:
    verbs = {"forget": forget, "tell": tell}
    if len(sys.argv) != 2 or sys.argv[1] not in verbs:
        print("usage: skips.py forget|tell", file=sys.stderr)
        return 2
    return verbs[sys.argv[1]]()


if __name__ == "__main__":
    sys.exit(main())
