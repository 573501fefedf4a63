"""Takes the library into the wheel, which then belongs to one system and any Python 3."""

import os
import shutil
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

HERE = Path(__file__).resolve().parent
NAME = "libtslab-preload.so"
LICENSES = ("LICENSE-APACHE", "LICENSE-MIT")


def library() -> Path:
    """The library to take: as the environment says, or as the repository built it."""
    named = os.environ.get("TSLAB_LIBRARY")
    found = Path(named) if named else HERE.parent / "build" / "lib" / NAME
    if not found.is_file():
        raise SystemExit(
            f"{found} is not there: build it (make build), or name it in $TSLAB_LIBRARY"
        )
    return found


class BuildWithLibrary(build_py):
    """Puts the library into the package."""

    def run(self) -> None:
        super().run()
        place = Path(self.build_lib) / "tslab" / NAME
        self.mkpath(str(place.parent))
        shutil.copyfile(library(), place)


class SystemWheel(bdist_wheel):
    """Compiled for one system, by no Python."""

    def get_tag(self) -> tuple[str, str, str]:
        return "py3", "none", super().get_tag()[2]


class SystemDistribution(Distribution):
    """Not for every system."""

    def has_ext_modules(self) -> bool:
        return True


# A source distribution brings its own; in a checkout they lie beside this folder.
for license_file in LICENSES:
    if not (HERE / license_file).exists():
        shutil.copyfile(HERE.parent / license_file, HERE / license_file)

setup(
    cmdclass={"build_py": BuildWithLibrary, "bdist_wheel": SystemWheel},
    distclass=SystemDistribution,
)
