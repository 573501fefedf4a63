"""`tslab purge` on processes with 64 MiB of idle memory: with a helper, with threads that allocate,
and with neither.

purge.py TSLAB PRELOAD IDLER
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import Popen

from command import Command, end_input, first_line, process

IDLE = 48 << 20
MIB = 1 << 20

# Nothing goes back by itself, and nothing is kept inaccessible.
OPTIONS = ("TSLAB_PURGE_DELAY_MS=3600000", "TSLAB_DETAIN_MS=0", "TSLAB_STATS_DELAY_MS=0")


def rss(pid: int) -> int:
    pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


@contextmanager
def idler(program: str, preload: str, helper: str) -> Iterator[Popen[str]]:
    """The process, once its memory is idle."""
    with process("env", *OPTIONS, f"TSLAB_HELPER={helper}", program, preload=preload) as child:
        assert first_line(child) == "ready\n"
        assert rss(child.pid) > IDLE
        yield child
        end_input(child)
        assert child.wait(30) == 0


def work(child: Popen[str]) -> None:
    assert child.stdin is not None
    child.stdin.write("go\n")
    child.stdin.flush()
    assert first_line(child) == "worked\n"


def check_helper(tslab: Command, program: str, preload: str) -> None:
    """The process sleeps; its helper looks once a second."""
    with idler(program, preload, "always") as child:
        before = rss(child.pid)
        told = tslab.json("purge", str(child.pid), "--wait", "30")
        assert told["followed"] is True, told
        assert told["given_back_bytes"] > IDLE, told
        assert told["rss_before_bytes"] - told["rss_bytes"] > IDLE, told
        assert before - rss(child.pid) > IDLE
        print(f"with a helper: {told['given_back_bytes'] / MIB:.0f} MiB in {told['waited_ms']} ms")


def check_busy(tslab: Command, program: str, preload: str) -> None:
    """The process has no helper, and works."""
    with idler(program, preload, "never") as child:
        purge = Popen([tslab.path, "purge", str(child.pid), "--wait", "30"], stdout=-1, text=True)
        while purge.poll() is None:
            work(child)
        said = purge.communicate()[0]
        assert purge.returncode == 0
        assert said.startswith(f"idler {child.pid} gave "), said
        assert rss(child.pid) < IDLE, said
        print(f"with work: {said.strip()}")


def check_idle(tslab: Command, program: str, preload: str) -> None:
    """Nobody is there to look until the process allocates."""
    with idler(program, preload, "never") as child:
        said = tslab.run("purge", str(child.pid))
        start = f"asked; idler {child.pid} gives back when it next allocates; idle: "
        assert said.startswith(start), said
        time.sleep(1)
        assert rss(child.pid) > IDLE
        begun = time.monotonic()
        work(child)
        took_ms = (time.monotonic() - begun) * 1000
        assert rss(child.pid) < IDLE
        print(f"idle for 3 s, without a helper: kept; then gone within {took_ms:.1f} ms of work")


def check_refusals(tslab: Command, program: str, preload: str) -> None:
    with idler(program, preload, "never") as child:
        pid = str(child.pid)
    assert "no process" in tslab.run("purge", pid, status=2)
    assert "statistics file" in tslab.run("purge", str(os.getpid()), status=2)


def main() -> int:
    tslab, preload, program = Command(sys.argv[1]), *sys.argv[2:]
    # A process of this name.
    link = Path(program).with_name("idler")
    link.unlink(missing_ok=True)
    link.symlink_to(program)
    for check in (check_helper, check_busy, check_idle, check_refusals):
        check(tslab, str(link), preload)
    link.unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main())
