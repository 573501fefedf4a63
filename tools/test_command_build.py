"""Tests of tools/tslab/build."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def test_a_cargo_that_is_too_old_is_named(tmp_path: Path) -> None:
    cargo = tmp_path / "cargo"
    cargo.write_text("#!/bin/sh\necho 'cargo 1.65.0'\n")
    cargo.chmod(0o755)
    done = subprocess.run(
        [ROOT / "tools/tslab/build"],
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 1
    assert "takes cargo 1.88, this one is 1.65.0" in done.stderr


def test_without_the_page_nobody_asks_for_npm(tmp_path: Path) -> None:
    asked = tmp_path / "asked"
    for name, said in (("cargo", "cargo 99.0.0"), ("npm", ""), ("node", "")):
        program = tmp_path / name
        program.write_text(f"#!/bin/sh\necho {name} >>{asked}\necho '{said}'\n")
        program.chmod(0o755)
    subprocess.run(
        [ROOT / "tools/tslab/build", "--no-page"],
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"},
        check=True,
        timeout=60,
    )
    assert set(asked.read_text().split()) == {"cargo"}
