"""The stranger's project with the package that Conan made."""

from __future__ import annotations

from conan import ConanFile
from conan.tools.cmake import CMake, cmake_layout


class StrangerTest(ConanFile):
    settings = "os", "arch", "compiler", "build_type"
    generators = "CMakeToolchain", "CMakeDeps"

    def requirements(self) -> None:
        self.requires(self.tested_reference_str)

    def layout(self) -> None:
        cmake_layout(self)

    def build(self) -> None:
        cmake = CMake(self)
        cmake.configure(build_script_folder="../stranger")
        cmake.build()

    def test(self) -> None:
        cmake = CMake(self)
        cmake.ctest()
