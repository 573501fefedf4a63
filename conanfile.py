"""The recipe for Conan 2: `conan create . --test-folder test/install/conan`."""

from __future__ import annotations

import re
from pathlib import Path

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.cmake import CMake, CMakeToolchain, cmake_layout


class TslabRecipe(ConanFile):
    name = "tslab"
    license = "MIT OR Apache-2.0"
    description = "A drop-in malloc that knows when its objects live"
    topics = ("allocator", "malloc", "memory")
    package_type = "unknown"  # shared and static at once
    settings = "os", "arch", "compiler", "build_type"
    options = {"secure": [True, False]}  # noqa: RUF012 the form that Conan asks for
    default_options = {"secure": False}  # noqa: RUF012
    exports_sources = (
        "CMakeLists.txt",
        "LICENSE-*",
        "cmake/*",
        "docs/man/*",
        "include/*",
        "src/*",
    )

    def set_version(self) -> None:
        header = Path(self.recipe_folder, "include", "tslab.h").read_text()
        found = re.search(r'#define TSLAB_VERSION "(.*)"', header)
        if found is None:
            raise ConanInvalidConfiguration("include/tslab.h defines no TSLAB_VERSION")
        self.version = found[1]

    def validate(self) -> None:
        if self.settings.os != "Linux":
            raise ConanInvalidConfiguration(f"tslab is for Linux, not for {self.settings.os}")

    def layout(self) -> None:
        cmake_layout(self)

    def generate(self) -> None:
        toolchain = CMakeToolchain(self)
        toolchain.variables["TSLAB_SECURE"] = bool(self.options.secure)
        for part in ("TESTS", "EXAMPLES", "BENCH"):
            toolchain.variables[f"TSLAB_{part}"] = False
        toolchain.generate()

    def build(self) -> None:
        cmake = CMake(self)
        cmake.configure()
        cmake.build(target="libraries")

    def package(self) -> None:
        cmake = CMake(self)
        for component in ("runtime", "development"):
            cmake.install(component=component)

    def package_info(self) -> None:
        """CMake finds our own package; the others are told the libraries."""
        self.cpp_info.set_property("cmake_find_mode", "none")
        self.cpp_info.builddirs = ["lib/cmake/tslab"]
        self.cpp_info.libs = ["tslab-preload"]
