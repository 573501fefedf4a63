"""Draws the pictures of the documents into docs/pictures: memory with and without epochs, the live
page as Chromium shows it, and `tslab top` on a terminal.

Needs what `make demo` builds, and what `tools/bootstrap demo page-test runner` installs.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import terminal
from demo import COMMAND, LEAKER, LIBRARY, MIX, MixRun, mixes, run_mixes
from matplotlib.figure import Figure

PICTURES = Path(__file__).resolve().parent.parent / "docs" / "pictures"
SHARED = Path("/dev/shm")
COLOURS = ("#b4652a", "#4a6fa5", "#14806f")
LIVE = "#555555"
WATCHED_SECONDS = 20
SERVER_SECONDS = 120
GROWN_SECONDS = 8
PAGE_HEIGHT = 1175  # down to the end of the second chart
TOP_SECONDS, TOP_COLUMNS, TOP_LINES = 20, 100, 22
CHROMIUM = ("chromium", "--headless", "--no-sandbox", "--hide-scrollbars", "--disable-gpu")
SECONDS = 120.0


def draw_memory(runs: list[MixRun]) -> Figure:
    """Resident memory over time of each way, beside what lives, which is the same in all."""
    figure = Figure(figsize=(8, 3.2), dpi=110, layout="constrained")
    axes = figure.subplots()
    for run, colour in zip(runs, COLOURS, strict=True):
        seconds = [sample.ms / 1000 for sample in run.samples]
        axes.plot(seconds, [sample.resident_mib for sample in run.samples], color=colour,
                  label=f"{run.mix.title}: {run.end.resident_mib:.0f} MiB at the end")  # fmt: skip
    live, live_mib = runs[-1].samples, runs[-1].end.live_mib
    axes.plot([sample.ms / 1000 for sample in live], [sample.live_mib for sample in live],
              color=LIVE, linestyle=":", label=f"live: {live_mib:.0f} MiB")  # fmt: skip
    axes.set(
        xlabel="seconds",
        ylabel="resident, MiB",
        title="Bursts of requests, then nothing; 2 % survive",
    )
    axes.set_ylim(bottom=0)
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside lower center", ncols=2, frameon=False)
    return figure


@contextmanager
def started(command: list[str], environment: dict[str, str]) -> Iterator[subprocess.Popen[str]]:
    """A process that is gone afterwards."""
    with subprocess.Popen(
        command, env={**os.environ, **environment}, text=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        try:
            yield process
        finally:
            process.kill()


def address_of(agent: subprocess.Popen[str]) -> str:
    """What the agent says on its first line."""
    assert agent.stderr is not None
    line = agent.stderr.readline()
    found = re.search(r"127\.0\.0\.1:\d+", line)
    if found is None:
        raise RuntimeError(f"tslab serve says no address: {line}")
    return f"http://{found[0]}/"


def photograph(address: str, path: Path, width: int = 1280, height: int = 900) -> None:
    """The page after it has asked for a while; Chromium's clock does not wait between questions."""
    budget = f"--virtual-time-budget={WATCHED_SECONDS * 1000}"
    window, file = f"--window-size={width},{height}", f"--screenshot={path}"
    subprocess.run(
        [*CHROMIUM, window, budget, file, address],
        check=True, timeout=SECONDS, capture_output=True,
    )  # fmt: skip


def link_statistics(pid: int, folder: Path) -> None:
    """A folder of its own, so that the page shows no other process of the machine."""
    for file in SHARED.glob(f"tslab.{pid}.*"):
        (folder / file.name).hardlink_to(file)


@contextmanager
def leaking_server() -> Iterator[Path]:
    """The folder with the statistics of a server with an epoch for each request, one object in a
    hundred forgotten.
    """
    server = [str(LEAKER), "--allocator=tslab", "--pattern=leak", f"--duration_s={SERVER_SECONDS}"]
    told = {"LD_PRELOAD": str(LIBRARY), "TSLAB_STATS_DELAY_MS": "0", "TSLAB_SAMPLE_BYTES": "64K"}
    with started(server, told) as leaking, tempfile.TemporaryDirectory(dir=SHARED) as folder:
        time.sleep(GROWN_SECONDS)
        link_statistics(leaking.pid, Path(folder))
        yield Path(folder)


def photograph_page(folder: Path, path: Path) -> None:
    """The live page."""
    apart = ["--history", "none", "--directory", str(folder)]
    agent = [str(COMMAND), "serve", "--listen", "127.0.0.1:0", *apart]
    with started(agent, {}) as serving:
        photograph(address_of(serving), path, height=PAGE_HEIGHT)


def photograph_terminal(folder: Path, path: Path) -> None:
    """`tslab top`."""
    command = [str(COMMAND), "top", "--directory", str(folder)]
    screen = terminal.watch(command, TOP_SECONDS, TOP_COLUMNS, TOP_LINES)
    page = folder / "top.html"
    terminal.write_page(screen, page)
    photograph(page.as_uri(), path, *terminal.size_of(screen))


def main() -> int:
    for path in (LIBRARY, MIX, LEAKER, COMMAND):
        if not path.exists():
            print(f"pictures: {path} is missing; run: make demo", file=sys.stderr)
            return 1
    if shutil.which(CHROMIUM[0]) is None:
        print("pictures: no chromium; run: tools/bootstrap page-test", file=sys.stderr)
        return 1
    PICTURES.mkdir(exist_ok=True)
    draw_memory(run_mixes(mixes())).savefig(PICTURES / "memory.png")
    with leaking_server() as folder:
        photograph_page(folder, PICTURES / "page.png")
        photograph_terminal(folder, PICTURES / "top.png")
    return 0


if __name__ == "__main__":
    sys.exit(main())
