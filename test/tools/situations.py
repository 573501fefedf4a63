"""What `tslab doctor` finds in recorded situations is what an expert wrote beside them.

situations.py TSLAB

test/tools/situations has NAME.toml, the expert's word, and NAME.tar.gz, what the program told.
record_situations.py records them anew.
"""

from __future__ import annotations

import re
import sys
import tarfile
import tempfile
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

from command import Command

PLACE = Path(__file__).parent / "situations"
SITUATIONS = 27
MOST_BYTES = 300 << 10


@dataclass
class Situation:
    """What an expert says of it."""

    name: str
    program: str
    verdict: str
    # All that doctor must find, by cause, and words of the finding or its advice.
    findings: list[str]
    says: dict[str, str] = field(default_factory=dict)
    # What a hasty look would name.
    not_these: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    @classmethod
    def read(cls, path: Path) -> Situation:
        return cls(path.stem, **tomllib.loads(path.read_text(encoding="utf-8")))


def checks(tslab: Command) -> set[str]:
    """The causes that doctor knows."""
    known = tslab.run("doctor", "--help").split("Causes, ")[1].split("Exit status")[0]
    return set(re.findall(r"^  ([a-z-]+)  ", known, re.MULTILINE))


def check_words(situation: Situation, known: set[str]) -> None:
    """The expert uses doctor's words, and does not contradict himself."""
    named = {*situation.findings, *situation.not_these}
    assert named <= known, (situation.name, named - known)
    assert not {*situation.findings} & {*situation.not_these}, situation
    assert situation.says.keys() <= {*situation.findings}, situation
    assert situation.program, situation
    assert situation.verdict, situation


def check_coverage(situations: list[Situation], known: set[str]) -> None:
    """Each cause has a situation for it and one against it."""
    found = {cause for one in situations for cause in one.findings}
    against = {cause for one in situations for cause in one.not_these}
    assert found == known, f"nothing recorded for {known - found}"
    assert against == known, f"nothing recorded against {known - against}"


def unpack(packed: Path, folder: Path) -> None:
    with tarfile.open(packed) as archive:
        for entry in archive:
            data = archive.extractfile(entry)
            assert data is not None, entry
            place = folder / entry.name
            place.parent.mkdir(exist_ok=True)
            place.write_bytes(data.read())


def check(tslab: Command, situation: Situation) -> None:
    with tempfile.TemporaryDirectory() as folder:
        unpack(PLACE / f"{situation.name}.tar.gz", Path(folder))
        now, before = f"{folder}/now", f"{folder}/before"
        words = ("doctor", now, "--before", before, *situation.asked)
        told = tslab.json(*words, status=1 if situation.findings else 0)
    found: dict[str, list[str]] = {}
    for finding in told["findings"]:
        said = f"{finding['what']} -> {finding['advice']}"
        found.setdefault(finding["cause"], []).append(said)
    assert sorted(found) == sorted(situation.findings), (situation, told["findings"])
    for cause, text in situation.says.items():
        assert any(text in said for said in found[cause]), (situation.name, text, found)
    # Two folders tell as much as two looks at a process that runs.
    assert told["not_checked"] == [], (situation.name, told["not_checked"])


def main(tslab_path: str) -> int:
    tslab = Command(tslab_path)
    all_of_them = [Situation.read(path) for path in sorted(PLACE.glob("*.toml"))]
    assert len(all_of_them) == SITUATIONS, [one.name for one in all_of_them]
    recorded = list(PLACE.glob("*.tar.gz"))
    assert len(recorded) == SITUATIONS, recorded
    assert sum(path.stat().st_size for path in recorded) < MOST_BYTES
    known = checks(tslab)
    check_coverage(all_of_them, known)
    wrong = []
    for situation in all_of_them:
        check_words(situation, known)
        try:
            check(tslab, situation)
        except AssertionError as error:
            wrong.append(f"{situation.name}: {error}")
    assert not wrong, "\n".join(wrong)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
