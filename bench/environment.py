"""The block that says on what the figures were measured."""

import os
import platform
import subprocess
from datetime import UTC, datetime
from pathlib import Path

# What measuring itself writes.
RESULTS = ("bench/results", "docs/results.md", "docs/images")
UNKNOWN = "unknown"


def first_line(path: str) -> str:
    try:
        return Path(path).read_text().splitlines()[0].strip()
    except (OSError, IndexError):
        return UNKNOWN


def processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def output_of(*command: str) -> str | None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout


def first_output_line(*command: str) -> str:
    lines = (output_of(*command) or "").splitlines()
    return lines[0] if lines else UNKNOWN


def commit_of(root: Path) -> str:
    """Unknown without a repository of the sources' own: one further up is somebody else's."""
    if not (root / ".git").exists():
        return UNKNOWN
    git = ("git", "--no-optional-locks", "-C", str(root))
    others = [f":(exclude){path}" for path in RESULTS]
    name = first_output_line(*git, "rev-parse", "--short=12", "--verify", "HEAD")
    changes = output_of(*git, "status", "--porcelain", "--untracked-files=no", "--", ".", *others)
    if changes is None:
        return UNKNOWN
    return f"{name} with changes" if changes and name != UNKNOWN else name


def cached(build: Path, key: str) -> str:
    """A value from CMake's cache."""
    cache = build / "CMakeCache.txt"
    lines = cache.read_text().splitlines() if cache.exists() else []
    for line in lines:
        if line.startswith(key + ":"):
            return line.split("=", 1)[1]
    return UNKNOWN


def environment(
    build: Path, rounds: int, commit: str, versions: dict[str, str]
) -> dict[str, object]:
    memory_kib = int(first_line("/proc/meminfo").split()[1])
    return {
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit,
        "processor": processor(),
        "processors": os.cpu_count(),
        "memory_mib": memory_kib // 1024,
        "governor": first_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        "kernel": platform.release(),
        "transparent_huge_pages": first_line("/sys/kernel/mm/transparent_hugepage/enabled"),
        "load_average_after": first_line("/proc/loadavg").split()[0],
        "overcommit_memory": first_line("/proc/sys/vm/overcommit_memory"),
        "libc": " ".join(platform.libc_ver()),
        "compiler": first_output_line(cached(build, "CMAKE_C_COMPILER"), "--version"),
        "build_type": cached(build, "CMAKE_BUILD_TYPE"),
        "rounds": rounds,
        "versions": versions,
    }
