"""The block that says on what the figures were measured."""

import os
import platform
import subprocess
from datetime import UTC, datetime
from pathlib import Path


def first_line(path: str) -> str:
    try:
        return Path(path).read_text().splitlines()[0].strip()
    except (OSError, IndexError):
        return "unknown"


def processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def first_output_line(*command: str) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return done.stdout.splitlines()[0] if done.stdout else "unknown"


def cached(build: Path, key: str) -> str:
    """A value from CMake's cache."""
    cache = build / "CMakeCache.txt"
    lines = cache.read_text().splitlines() if cache.exists() else []
    for line in lines:
        if line.startswith(key + ":"):
            return line.split("=", 1)[1]
    return "unknown"


def environment(build: Path, rounds: int, versions: dict[str, str]) -> dict[str, object]:
    memory_kib = int(first_line("/proc/meminfo").split()[1])
    return {
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
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
