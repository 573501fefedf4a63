"""Runs the commands that the documents show, as a reader would type them and in that order.

A command that a test of its own already runs is named in ELSEWHERE with that test. Every other one
is run, so that no document shows what nobody tries.
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = (
    "README.md",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "docs/building.md",
    "docs/epochs.md",
    "docs/faq.md",
    "docs/index.md",
    "docs/python.md",
    "docs/rust.md",
    "docs/uses/batches.md",
    "docs/uses/drop-in.md",
    "docs/uses/game-loop.md",
    "docs/uses/server.md",
    "docs/uses/tenants.md",
)
ELSEWHERE = {
    "make test": "it runs this",
    "make lint": "ctest: lint",
    "make bench": "ctest: bench_smoke_*, and the pytest cases of bench/",
}
# What a reader is to see.
SHOWN = {
    "build/cargo/release/tslab top --batch -n 3": "python3",
}
SECONDS = 280

# What a command shows does not depend on how often it measures.
ENVIRONMENT = {**os.environ, "DEMO_ROUNDS": "1"}


def commands(document: Path) -> list[str]:
    """The lines behind a dollar sign in a document's console blocks."""
    blocks = re.findall(r"```console\n(.*?)```", document.read_text(), re.DOTALL)
    lines = [line.strip() for block in blocks for line in block.splitlines()]
    return [line[2:] for line in lines if line.startswith("$ ")]


def fails(command: str) -> bool:
    """Runs a command from the project's root; says what went wrong."""
    # A file, no pipe: what a command leaves running in the background would keep that open.
    with tempfile.TemporaryFile() as output:
        done = subprocess.run(
            ["bash", "-euc", command],
            cwd=ROOT,
            env=ENVIRONMENT,
            timeout=SECONDS,
            stdout=output,
            stderr=output,
            check=False,
        )
        output.seek(0)
        text = output.read().decode(errors="replace")
    is_wrong = done.returncode != 0 or SHOWN.get(command, "") not in text
    print(f"{'FAILED' if is_wrong else 'ok'}: {command}")
    if is_wrong:
        print(text)
    return is_wrong


def main() -> int:
    """Runs every command of every document once."""
    shown = dict.fromkeys(command for name in DOCUMENTS for command in commands(ROOT / name))
    if not shown:
        print("no document shows a command: has the form of the console blocks changed?")
        return 1
    unknown = [name for name in ELSEWHERE if name not in shown]
    if unknown:
        print(f"no document shows {', '.join(unknown)} any more: take it out of ELSEWHERE")
        return 1
    missing = [command for command in SHOWN if command not in shown]
    if missing:
        print(f"no document shows {', '.join(missing)} any more: take it out of SHOWN")
        return 1
    failures = sum(fails(command) for command in shown if command not in ELSEWHERE)
    return int(failures != 0)


if __name__ == "__main__":
    sys.exit(main())
