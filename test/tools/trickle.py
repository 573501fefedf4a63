"""A leak of one object a second, as the command tells of it with default options.

trickle.py TSLAB PRELOAD PATIENT
"""

from __future__ import annotations

import sys
import time
from typing import Any

from command import Command, first_line, process

LEAST_S = 15
PATIENCE_S = 120
# Where a leak that is young may look as if it had ended.
AFTER_S = 5
STEP_S = 2


def rows(tslab: Command, pid: int, *options: str) -> list[dict[str, Any]]:
    told = tslab.json("leaks", str(pid), *options, status=None)
    leaks: list[dict[str, Any]] = told["leaks"]
    return leaks


def check_verdicts(leaks: list[dict[str, Any]]) -> None:
    """It goes on: of no row may anybody think that it has ended, or that it is a cache."""
    for leak in leaks:
        growth = leak["growth"]
        assert growth is None or growth["verdict"] in {"grows", "not_known"}, leak


def functions(leaks: list[dict[str, Any]]) -> set[str]:
    stacks = [stack for leak in leaks for stack in leak["younger_stacks"]]
    return {stack["calls"][1]["function"] for stack in stacks}


def check_text(tslab: Command, pid: int) -> None:
    said = tslab.run("leaks", str(pid))
    assert "   sampled so far: " in said, said
    assert "request_serve  patient.c:" in said, said


def check_doctor(tslab: Command, pid: int) -> None:
    """Nothing is old enough to be told of."""
    told = tslab.json("doctor", str(pid))
    assert told["findings"] == [], told


def main(tslab_path: str, preload: str, patient: str) -> int:
    tslab = Command(tslab_path)
    with process(patient, "trickle", preload=preload) as child:
        assert first_line(child) == "ready\n"
        found: set[str] = set()
        start = time.monotonic()
        while not found or time.monotonic() < start + LEAST_S:
            assert time.monotonic() < start + PATIENCE_S, "nobody hears who loses it"
            time.sleep(STEP_S)
            check_verdicts(rows(tslab, child.pid, "--after", str(AFTER_S)))
            leaks = rows(tslab, child.pid)
            check_verdicts(leaks)
            found = functions(leaks)
        assert found == {"request_serve"}, found
        check_text(tslab, child.pid)
        check_doctor(tslab, child.pid)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
