"""Runs the commands that the documents show, as a reader would type them.

A command that a test of its own already runs is named in ELSEWHERE with that test. Every other one
is run, so that no document shows what nobody tries.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = ("README.md", "ARCHITECTURE.md", "CHANGELOG.md", "SECURITY.md")
ELSEWHERE = {
    "make test": "it runs this",
    "make lint": "ctest: lint",
    "make bench": "ctest: bench_smoke_*, and the pytest cases of bench/",
}
SECONDS = 280

# What a command shows does not depend on how often it measures.
ENVIRONMENT = {**os.environ, "DEMO_ROUNDS": "1"}


def commands(document: Path) -> list[str]:
    """The lines behind a dollar sign in a document's console blocks."""
    blocks = re.findall(r"```console\n(.*?)```", document.read_text(), re.DOTALL)
    return [line[2:] for block in blocks for line in block.splitlines() if line.startswith("$ ")]


def fails(command: str) -> bool:
    """Runs a command from the project's root; says what went wrong."""
    done = subprocess.run(
        ["bash", "-euc", command],
        cwd=ROOT,
        env=ENVIRONMENT,
        timeout=SECONDS,
        capture_output=True,
        text=True,
        check=False,
    )
    print(f"{'ok' if done.returncode == 0 else 'FAILED'}: {command}")
    if done.returncode != 0:
        print(done.stdout + done.stderr)
    return done.returncode != 0


def main() -> int:
    """Runs every command of every document once."""
    shown = {command for name in DOCUMENTS for command in commands(ROOT / name)}
    if not shown:
        print("no document shows a command: has the form of the console blocks changed?")
        return 1
    unknown = [name for name in ELSEWHERE if name not in shown]
    if unknown:
        print(f"no document shows {', '.join(unknown)} any more: take it out of ELSEWHERE")
        return 1
    failures = sum(fails(command) for command in sorted(shown - ELSEWHERE.keys()))
    return int(failures != 0)


if __name__ == "__main__":
    sys.exit(main())
