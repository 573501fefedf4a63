"""Runs the commands that the documents show, as a reader would type them and in that order.

    commands.py                        every document
    commands.py DOCUMENT SECTION...    what stands below these headings, and in these alone

A block of code whose title begins with build/ is a file, which is written there before the commands
behind it are run. A command that a test of its own already runs is named in ELSEWHERE with that
test. Every other one is run, so that no document shows what nobody tries.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# `make recipes` reads the commands of these, runs them and writes what it measures.
RECIPES = ROOT / "docs/recipes"
# ctest: tools.questions runs the commands of this one, on processes made for each question.
QUESTIONS = ROOT / "docs/questions.md"
TRY_RUST = (
    "TSLAB_LEAKS_AT_EXIT=report cargo run --quiet --manifest-path build/first-rust/Cargo.toml"
)
ELSEWHERE = {
    "make test": "it runs this",
    "make lint": "ctest: lint",
    "make bench": "ctest: bench_smoke_*, and the pytest cases of bench/",
    "make recipes": "it starts servers and measures; pytest: bench/test_recipes.py",
    TRY_RUST: "make soak: test/install/first_page.sh",
    (
        "cargo build --release --locked --manifest-path tools/tslab/Cargo.toml"
        " --target-dir build/cargo"
    ): "ctest: tools.build, and tools.without_node",
    "cargo install --locked --path tools/tslab": "it installs for the user; tools.without_node",
    "vcpkg install tslab --overlay-ports=tslab/packaging/vcpkg": "no vcpkg; ctest: install.vcpkg",
    (
        "bpftrace -e 'usdt:/usr/lib/libtslab-preload.so:tslab:epoch_end { @[arg1] = count(); }'"
    ): "it takes root and the kernel's tracing; ctest: preload.probes",
    "python -m tslab run script.py": "ctest: python.package",
    "dashboards/check": "ctest: lint",
    "cd dashboards && npm run generate": "dashboards/check compares with what it would write",
    "tools/tslab/page/build": "ctest: tools.page",
    "tools/tslab/page/check": "ctest: tools.page",
    "npm run preview": "it serves until it is stopped; tools.page starts it",
    "npm run pictures": "it serves a reviewer; tools.page looks at the same views",
    "tslab leaks 4242 --after 60": "ctest: tools.live",
    "tslab doctor 4242": "ctest: tools.live",
    "tslab watch 4242 --interval 5": "ctest: tools.live",
    "tslab top": "ctest: tools.live",
    "tslab diff before.json after.json --fail-on regression --tolerance 10": "ctest: tools.live",
    "tslab advise -- ./server --port 80": "ctest: tools.advise",
    "tslab record 4242 -o DIR --every 60": "ctest: tools.record",
    "tslab record -o DIR -- ./server --port 80": "ctest: tools.record",
    "tslab diff DIR/at-1 DIR/peak": "ctest: tools.record",
    "tslab run -o helper=true -- ./server --port 80": "ctest: tools.live",
    "tslab profile 4242": "ctest: tools.profile",
    "tslab core core.4242": "ctest: tools.core",
    "tslab core core.4242 --address 0x7e8a12345678": "ctest: tools.core",
    "tslab serve": "ctest: tools.live",
    "tslab observe": "ctest: tools.observe",
}
# What a reader is to see.
LEAK = 'tslab: leak: "GET /upload": '
SHOWN = {
    "build/cargo/release/tslab top --batch -n 3": "python3",
    "TSLAB_LEAKS_AT_EXIT=report build/first": LEAK,
    "TSLAB_LEAKS_AT_EXIT=report build/first-cpp": LEAK,
    TRY_RUST: LEAK,
    "PYTHONPATH=python/src python3 -m tslab run build/first.py": "objects live on",
}
SECONDS = 280
START_SECONDS = 60

# What a command shows does not depend on how often it measures. The command `tslab` is in the PATH,
# as for a reader who has installed it.
COMMAND = ROOT / "build/cargo/release"
ENVIRONMENT = {**os.environ, "DEMO_ROUNDS": "1", "PATH": f"{COMMAND}:{os.environ['PATH']}"}
# What starts the shell, such as chroot.
SHELL = [*shlex.split(os.environ.get("COMMANDS_IN", "")), "bash"]
# The process that the documents' examples look at, and one that stands in for it.
EXAMPLE = " 4242"
STAND_IN = (
    "python3",
    "-c",
    "import time; rows = [bytes(999) for n in range(10**5)]; time.sleep(99)",
)

HEADING = r"^#+ (?P<heading>[^\n]+)$"
FENCE = r"^ *```(?P<language>\w+)(?: title=\"(?P<title>[^\"]+)\")?\n(?P<text>.*?)^ *```$"
REMARK = re.compile(r"  +# .*$")
PART = re.compile(f"{HEADING}|{FENCE}", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Step:
    """What a reader does: types a command, or writes a file."""

    section: str
    command: str = ""
    file: str = ""
    text: str = ""


def steps_of_block(section: str, block: re.Match[str]) -> Iterator[Step]:
    if block["language"] == "console":
        lines = (line.strip() for line in block["text"].splitlines())
        for line in lines:
            if line.startswith("$ "):
                yield Step(section, REMARK.sub("", line[2:]))
    elif (block["title"] or "").startswith("build/"):
        yield Step(section, file=block["title"], text=block["text"])


def documents() -> list[Path]:
    """All that a reader may open."""
    folders = (ROOT, ROOT / "dashboards", ROOT / "python", ROOT / "tools/tslab")
    found = [path for folder in folders for path in sorted(folder.glob("*.md"))]
    found += [ROOT / "tools/tslab/page/README.md", *sorted(ROOT.glob("docs/**/*.md"))]
    by_others = [path for path in found if path.parent == RECIPES and path.name != "index.md"]
    return [path for path in found if path not in (*by_others, QUESTIONS)]


def steps(document: Path) -> Iterator[Step]:
    """The commands behind a dollar sign, and the files to write, with their headings."""
    section = ""
    for part in PART.finditer(document.read_text()):
        if part["heading"]:
            section = part["heading"]
        else:
            yield from steps_of_block(section, part)


def fails(command: str) -> bool:
    """Runs a command from the project's root; says what went wrong."""
    # A file, no pipe: what a command leaves running in the background would keep that open.
    with tempfile.TemporaryFile() as output:
        done = subprocess.run(
            [*SHELL, "-euc", command],
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


def write(step: Step) -> None:
    path = ROOT / step.file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(step.text)


@contextmanager
def stand_in() -> Iterator[str]:
    """Its number, once it can be looked at."""
    library = ROOT / "build/lib/libtslab-preload.so"
    with subprocess.Popen(STAND_IN, env={**os.environ, "LD_PRELOAD": str(library)}) as process:
        try:
            deadline = time.monotonic() + START_SECONDS
            while not list(Path("/dev/shm").glob(f"tslab.{process.pid}.*")):
                if time.monotonic() > deadline:
                    raise RuntimeError("the process to look at has no statistics")
                time.sleep(0.05)
            yield str(process.pid)
        finally:
            process.kill()


def fails_there(command: str) -> bool:
    """The same, of a command about a process."""
    if EXAMPLE not in command:
        return fails(command)
    with stand_in() as pid:
        return fails(command.replace(EXAMPLE, f" {pid}"))


def follow(wanted: list[Step]) -> int:
    """How many of the commands fail."""
    failures = 0
    for step in wanted:
        if step.command:
            failures += fails_there(step.command)
        else:
            write(step)
    return failures


def complaint(shown: set[str]) -> str | None:
    """What is wrong with the documents, or with the lists here that name what they show."""
    for document in documents():
        if re.search(r"^ *```(sh|bash)$", document.read_text(), re.MULTILINE):
            return f"{document}: commands stand in a block `console`, each behind a dollar sign"
    if not shown:
        return "no document shows a command: has the form of the console blocks changed?"
    for name, known in (("ELSEWHERE", ELSEWHERE), ("SHOWN", SHOWN)):
        gone = [command for command in known if command not in shown]
        if gone:
            return f"no document shows {', '.join(gone)} any more: take it out of {name}"
    return None


def follow_all() -> int:
    """Every command once."""
    wanted = dict.fromkeys(step for each in documents() for step in steps(each))
    wrong = complaint({step.command for step in wanted if step.command})
    if wrong:
        print(wrong)
        return 1
    once: dict[str, Step] = {}
    for step in wanted:
        if step.command not in ELSEWHERE:
            once.setdefault(step.command or step.file, step)
    return follow(list(once.values()))


def follow_sections(document: str, sections: list[str]) -> int:
    """All that stands there, as for a reader who does nothing else."""
    wanted = [step for step in steps(ROOT / document) if step.section in sections]
    empty = set(sections) - {step.section for step in wanted if step.command}
    if empty:
        print(f"{document} shows no command below {', '.join(sorted(empty))}")
        return 1
    return follow(wanted)


def main() -> int:
    if len(sys.argv) > 2:
        return min(follow_sections(sys.argv[1], sys.argv[2:]), 1)
    return min(follow_all(), 1)


if __name__ == "__main__":
    sys.exit(main())
