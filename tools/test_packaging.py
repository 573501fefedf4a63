"""packaging/vcpkg/vcpkg.json keeps the rules that vcpkg documents for manifests."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

PORT = Path(__file__).resolve().parent.parent / "packaging/vcpkg"
IDENTIFIER = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
VERSION = re.compile(r"(0|[1-9]\d*)(\.(0|[1-9]\d*)){2}")
FIELDS = {
    "name": str, "version": str, "description": str, "homepage": str, "license": str,
    "supports": str, "dependencies": list, "features": dict,
}  # fmt: skip
DEPENDENCY_FIELDS = {"name": str, "host": bool}
FEATURE_FIELDS = {"description": str, "dependencies": list}
SPDX = {"MIT", "Apache-2.0"}
PLATFORMS = {"linux", "x64", "arm64"}


def complaints_of_fields(
    where: str, found: Mapping[str, Any], known: Mapping[str, type]
) -> list[str]:
    return [
        f"{where}: {name} is not known or of another type"
        for name, value in found.items()
        if not isinstance(value, known.get(name, ()))
    ]


def complaints_of_words(where: str, text: str, words: set[str], between: str) -> list[str]:
    return [
        f"{where}: {word} is not known"
        for word in re.split(rf"[\s()]|{between}", text)
        if word and word not in words
    ]


def complaints(manifest: dict[str, Any]) -> list[str]:
    """What vcpkg would refuse."""
    found = complaints_of_fields("manifest", manifest, FIELDS)
    found += [f"no {name}" for name in ("name", "version") if name not in manifest]
    dependencies = manifest.get("dependencies", [])
    features = manifest.get("features", {})
    names = [manifest.get("name", ""), *features, *(one.get("name", "") for one in dependencies)]
    found += [f"{name!r} is no identifier" for name in names if not IDENTIFIER.fullmatch(name)]
    if not VERSION.fullmatch(manifest.get("version", "")):
        found.append("the version is none")
    found += complaints_of_words("license", manifest.get("license", ""), SPDX, "OR|AND")
    found += complaints_of_words("supports", manifest.get("supports", ""), PLATFORMS, "[&|!]")
    for one in dependencies:
        found += complaints_of_fields("dependency", one, DEPENDENCY_FIELDS)
    for name, feature in features.items():
        found += complaints_of_fields(name, feature, FEATURE_FIELDS)
        if "description" not in feature:
            found.append(f"{name}: no description")
    return found


def manifest() -> dict[str, Any]:
    read: dict[str, Any] = json.loads((PORT / "vcpkg.json").read_text())
    return read


def test_the_manifest_is_one() -> None:
    assert complaints(manifest()) == []


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"name": "tslab_"}, "'tslab_' is no identifier"),
        ({"version": "0.1"}, "the version is none"),
        ({"licence": "MIT"}, "manifest: licence is not known or of another type"),
        ({"license": "MIT OR Apache"}, "license: Apache is not known"),
        ({"supports": "linux & amd64"}, "supports: amd64 is not known"),
        ({"features": {"secure": {}}}, "secure: no description"),
        ({"dependencies": [{"name": "x", "host": 1}]}, "dependency: host is not known or of"),
    ],
)
def test_mistakes_are_found(change: dict[str, Any], complaint: str) -> None:
    (found,) = complaints({**manifest(), **change})
    assert found.startswith(complaint)


def test_every_helper_port_that_the_portfile_needs_is_a_dependency() -> None:
    portfile = (PORT / "portfile.cmake").read_text()
    called = set(re.findall(r"^(vcpkg_cmake_config|vcpkg_cmake)_", portfile, re.MULTILINE))
    wanted = {one["name"] for one in manifest()["dependencies"] if one["host"]}
    assert {name.replace("_", "-") for name in called} == wanted
