"""The allocators to measure: where each lies and, where it cannot tell itself, its version."""

import tomllib
from dataclasses import dataclass
from pathlib import Path

OURS = "tslab"
UNOBSERVED = "unobserved"
SYSTEM_FOLDERS = (
    Path("/usr/lib/x86_64-linux-gnu"),
    Path("/usr/lib/aarch64-linux-gnu"),
    Path("/usr/lib64"),
    Path("/usr/lib"),
)
# Other versions of a peer; a glance goes without them.
TWINS = ("jemalloc-debian", "mimalloc-debian", "mimalloc-next")
LOCK_FILE = Path(__file__).parent / "peers" / "Cargo.lock"


@dataclass(frozen=True)
class Allocator:
    """A malloc by its name here; without a library it is the C library's own."""

    name: str
    library: Path | None
    crate: str = ""
    environment: tuple[tuple[str, str], ...] = ()
    watched: bool = False  # somebody reads the statistics of its processes

    @property
    def file(self) -> str:
        """The file that a process on this allocator must name as malloc's."""
        return "libc.so.6" if self.library is None else self.library.name

    @property
    def preload(self) -> str:
        return "-" if self.library is None else str(self.library)

    def exists(self) -> bool:
        return self.library is None or self.library.exists()


def system_library(file: str) -> Path:
    """Where Debian put a library; a path that does not exist when it is not installed."""
    for folder in SYSTEM_FOLDERS:
        if (folder / file).exists():
            return folder / file
    return SYSTEM_FOLDERS[0] / file


def all_allocators(build: Path) -> list[Allocator]:
    """Every allocator there could be, ours first."""
    crates = {
        "jemalloc": "tikv-jemalloc-sys",
        "mimalloc": "libmimalloc-sys",
        "mimalloc-next": "libmimalloc-sys2",
        "rpmalloc": "rpmalloc-sys",
        "snmalloc": "snmalloc-sys",
    }
    debian = {
        "jemalloc-debian": "libjemalloc.so.2",
        "mimalloc-debian": "libmimalloc.so.2.0",
        "tcmalloc-debian": "libtcmalloc_minimal.so.4",
    }
    return [
        Allocator(OURS, build / "lib" / "libtslab-preload.so"),
        Allocator("glibc", None),
        *(Allocator(name, system_library(file)) for name, file in debian.items()),
        *(
            Allocator(name, build / "peers" / f"libpeer-{name}.so", crate)
            for name, crate in crates.items()
        ),
    ]


def ours_secure(build: Path) -> Allocator:
    return Allocator("tslab-secure", build / "secure" / "lib" / "libtslab-preload.so")


def ours_observed(build: Path) -> list[Allocator]:
    """Ours with all that tells of it, with statistics alone, and with nothing."""
    library = build / "lib" / "libtslab-preload.so"
    told = ("TSLAB_STATS_DELAY_MS", "0")
    sampled = ("TSLAB_SAMPLE_BYTES", "512K")
    return [
        Allocator(OURS, library, environment=(told, sampled), watched=True),
        Allocator("statistics", library, environment=(told,), watched=True),
        Allocator(UNOBSERVED, library, environment=(("TSLAB_STATS", "0"),)),
    ]


def crate_version(crate: str) -> str:
    """The version that the lock file pins, as crates without a version function need it."""
    with LOCK_FILE.open("rb") as file:
        packages = tomllib.load(file)["package"]
    for package in packages:
        if package["name"] == crate:
            return f"{crate} {package['version']}"
    return "unknown"


def true_version(allocator: Allocator, told: str) -> str:
    """What the process told, else what the lock file says."""
    if told == "unknown" and allocator.crate:
        return crate_version(allocator.crate)
    return told
