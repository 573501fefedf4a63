"""The Python that the documents show, run as a reader would run it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = ("README.md", "docs/python.md", "python/README.md")


def blocks() -> list[tuple[str, str]]:
    """Place and text of each block."""
    found = []
    for name in DOCUMENTS:
        text = (ROOT / name).read_text()
        for block in re.finditer(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
            found.append((f"{name}:{text.count(chr(10), 0, block.start()) + 1}", block[1]))
    return found


def test_every_document_shows_code() -> None:
    assert {place.partition(":")[0] for place, _ in blocks()} == set(DOCUMENTS)


@pytest.mark.parametrize(("place", "code"), blocks())
def test_code_runs(place: str, code: str) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "tslab", "run", "-c", code],
        env={**os.environ, "PYTHONPATH": str(ROOT / "python/src")},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, ""), place
