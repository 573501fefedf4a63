"""`tslab advise`: it names the function that a scope belongs around, and predicts what that saves.

advice.py TSLAB PRELOAD PROGRAMS
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

JOBS = 8
MOST_S = 60

# Of what is measured with epochs, the prediction may be that far off.
TOLERANCE = 0.2


class Command:
    """The command under test, and the programs that it runs."""

    def __init__(self, tslab: str, preload: str, programs: str) -> None:
        self.tslab = tslab
        self.preload = preload
        self.programs = Path(programs)

    def program(self, name: str) -> str:
        return str(self.programs / f"tools_{name}")

    def streams(self, *arguments: str, status: int = 0) -> tuple[str, str]:
        done = subprocess.run(
            [self.tslab, "advise", *arguments],
            env={**os.environ, "TSLAB_LIBRARY": self.preload},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=MOST_S,
        )
        said = done.stdout + done.stderr
        assert done.returncode == status, f"{arguments}: status {done.returncode}\n{said}"
        return done.stdout, done.stderr

    def json(self, *arguments: str, status: int = 0) -> Any:
        """The report, which what the program prints is no part of."""
        return json.loads(self.streams("--json", *arguments, status=status)[0])

    def measured(self, name: str, *arguments: str) -> dict[str, int]:
        """What is resident of a program, as it says itself, without samples."""
        done = subprocess.run(
            [self.program(name), *arguments],
            env={**os.environ, "LD_PRELOAD": self.preload},
            capture_output=True,
            text=True,
            check=True,
            timeout=MOST_S,
        )
        told: dict[str, int] = json.loads(done.stdout)
        return told


def is_near(predicted: int, truth: int) -> bool:
    return abs(predicted - truth) <= TOLERANCE * truth


def check_prediction(command: Command, place: Any, name: str, *arguments: str) -> None:
    """What is predicted is what the program with epochs does."""
    truth = command.measured(name, "epochs", str(JOBS), *arguments)
    for when in ("peak_bytes", "trough_bytes"):
        assert is_near(place["predicted"][when], truth[when]), (name, when, place, truth)


def check_bursts(command: Command) -> None:
    told = command.json("--", command.program("bursts"), "plain", str(JOBS))
    assert not told["events_cut"], told
    assert not told["has_epochs"], told
    assert told["verdict"]["kind"] == "scope", told
    place = told["places"][0]
    assert (place["function"], place["caller"]) == ("handle_job", "serve"), told
    assert place["file"].endswith("bursts.c"), place
    assert place["line"] > 0, place
    assert place["caller_line"] > place["line"], place
    assert place["confidence"] == "high", place
    assert place["allocated_percent"] >= 95, place
    assert 92 <= place["dead_percent"] < 100, place
    kept = place["survivors"][0]
    assert kept["stack"][1].startswith("keep_row  bursts.c:"), place
    assert 10 <= kept["permille"] <= 50, place
    check_prediction(command, place, "bursts")
    # Which is worth saying: without epochs another amount is resident then.
    now = told["resident"]["trough_bytes"]
    assert not is_near(place["predicted"]["trough_bytes"], now), told
    # It is one program of phases, in a single thread.
    assert told["by_phase"]["count"] > 1, told
    assert told["by_phase"]["dead_percent"] >= 80, told
    assert told["by_thread"]["count"] == 1, told


def check_crew(command: Command) -> None:
    """Threads, each of which serves requests."""
    told = command.json("--", command.program("crew"), "plain", str(JOBS))
    place = told["places"][0]
    assert (place["function"], place["caller"]) == ("answer", "request_serve"), told
    assert place["rounds"] >= JOBS, place
    check_prediction(command, place, "crew")
    threads = [one for one in told["by_thread"]["largest"] if one["allocated_bytes"] > 1 << 20]
    assert len(threads) == 4, told["by_thread"]
    assert all(one["dead_percent"] >= 90 for one in threads), threads


def check_silent(command: Command) -> None:
    """Nobody gives back what epochs leave in a program that is silent: they save nothing."""
    arguments = ("--json", "--", command.program("bursts"), "plain", str(JOBS), "silent")
    out, err = command.streams(*arguments, status=1)
    told = json.loads(out)
    assert told["verdict"]["kind"] == "vain", told
    assert "no epoch would help: a scope around handle_job" in told["verdict"]["text"], told
    assert not told["places"], told
    place = told["others"][0]
    check_prediction(command, place, "bursts", "silent")
    # On a busy machine a good part of it may have had a use in between.
    is_much = place["predicted"]["idle_bytes"] > place["predicted"]["trough_bytes"] / 4
    assert ("TSLAB_HELPER=always" in err) == is_much, (place, err)


def check_text(command: Command) -> None:
    bursts = command.program("bursts")
    with tempfile.TemporaryDirectory() as folder:
        patch = Path(folder) / "patch"
        arguments = ("--patch", str(patch), "--bytes", "64K", "--", bursts, "plain", "2")
        out, err = command.streams(*arguments)
        check_patch(patch, Path(folder))
    assert "\n1. handle_job  bursts.c:" in out, out
    assert "called by serve  bursts.c:" in out, out
    assert '\n   +  tslab_epoch work = tslab_epoch_open("handle_job", NULL);\n' in out, out
    assert "\nan epoch for each of 2 phases: " in out, out
    # What the program prints is no part of the advice.
    assert '{"peak_bytes": ' not in out, out
    assert '{"peak_bytes": ' in err, err


def check_patch(patch: Path, folder: Path) -> None:
    """It applies to the source."""
    source = Path(patch.read_text().splitlines()[0].removeprefix("--- "))
    assert source.name == "bursts.c", source
    mine = folder / source.name
    mine.write_text(source.read_text())
    applied = ["patch", "--unified", "--batch", str(mine), str(patch)]
    subprocess.run(applied, check=True, capture_output=True)
    assert "  int outside = tslab_scope_enter(&here, work);\n  int count = handle" in (
        mine.read_text()
    )


# Kind and sentence, by the program's arguments.
VERDICTS = {
    ("shapes", "keep"): ("lives", "no epoch would help: 100 % of what was allocated lived until"),
    ("shapes", "nest"): ("vain", "no epoch would help: a scope around nest, whose objects die"),
    ("shapes", "few"): ("thin", "samples were taken, which is too few to say"),
    ("stripped", "plain", "2"): ("nameless", "the program's functions have no names"),
}


def check_verdicts(command: Command) -> None:
    """Programs which epochs would not help, or of which too little is known."""
    for (name, *arguments), (kind, sentence) in VERDICTS.items():
        told = command.json("--", command.program(name), *arguments, status=1)
        assert told["verdict"]["kind"] == kind, told
        assert sentence in told["verdict"]["text"], told
        assert not told["places"], told


def check_refusals(command: Command) -> None:
    assert "no-such-program" in command.streams("--", "no-such-program", status=2)[1]
    at_once = command.streams("--", "true", status=2)[1]
    assert "it allocated next to nothing, or was over at once" in at_once, at_once
    other = command.streams("--", "env", "-u", "LD_PRELOAD", "sleep", "0.3", status=2)[1]
    assert "runs another one now" in other or "before it had a statistics file" in other, other
    assert "a number of bytes" in command.streams("--bytes", "1", "--", "true", status=2)[1]
    own = command.streams("--", command.program("hermit"), status=2)[1]
    assert "linked statically to an allocator of its own" in own, own
    command.streams(status=2)


def main(tslab: str, preload: str, programs: str) -> None:
    command = Command(tslab, preload, programs)
    check_bursts(command)
    check_crew(command)
    check_silent(command)
    check_text(command)
    check_verdicts(command)
    check_refusals(command)


if __name__ == "__main__":
    main(*sys.argv[1:])
