"""The thirteen questions of docs/questions.md: each command answers as shown there, within 5 s.

questions.py TSLAB PRELOAD ASKER BURSTS GUIDE

Excerpts are compared word by word; numbers, sizes and times may be others. What numbers must be is
said here, question by question.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

PID = "4242"
MOST_S = 5
QUESTIONS = 13

MIB = 1 << 20
CACHE_MIB = 10000 * 4000 / MIB  # of `asker`, as the program counts it
POOL_MIB = 20000 * 1000 / MIB

# Samples of 64 KiB estimate 20 MiB within 6 %; 4 times that. With a bound on samples a second, a
# thread that stops in the middle of its rows would leave a third of them to 5 samples.
CHANCE = 0.25

UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
SIZE = r"\d[\d.]* (?:B|KiB|MiB|GiB)"
NUMBER = r"\d[\d.]*"
# What lived for four seconds in the guide may have lived for ten here: then two decades have some.
SHARES = rf"{NUMBER} %(?:\s+{NUMBER} %)*"


class Asker:
    """The server that is asked about."""

    def __init__(self, program: str, preload: str) -> None:
        environment = {
            "LD_PRELOAD": preload,
            "TSLAB_SAMPLE_BYTES": "64K",
            "TSLAB_SAMPLE_RATE": "0",
            # What is idle stays until it is asked for.
            "TSLAB_PURGE_DELAY_MS": "600000",
        }
        self.child = subprocess.Popen(
            [program],
            env={**os.environ, **environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.hears("loaded")

    def hears(self, word: str) -> None:
        assert self.child.stdout is not None
        assert self.child.stdout.readline() == word + "\n"

    def does(self, what: str) -> None:
        assert self.child.stdin is not None
        self.child.stdin.write(what + "\n")
        self.child.stdin.flush()
        self.hears("done")

    def end(self) -> None:
        self.child.kill()
        self.child.communicate()


@dataclass
class Question:
    """A heading of the guide, with its commands and the lines that the last of them answers."""

    heading: str
    commands: list[str]
    lines: list[str]


def questions(guide: Path) -> Iterator[Question]:
    for part in guide.read_text(encoding="utf-8").split("\n## ")[1:]:
        heading = part.splitlines()[0]
        blocks = re.findall(r"```console\n(.*?)```", part, re.DOTALL)
        assert len(blocks) == 1, part
        lines = blocks[0].splitlines()
        commands = [line[2:] for line in lines if line.startswith("$ ")]
        yield Question(heading, commands, [line for line in lines if not line.startswith("$ ")])


def pattern(line: str) -> str:
    """What an answer must have for a line of the guide. Excerpts of JSON have no blanks."""
    # "-" and "+" stay: which of them it is belongs to the answer.
    words = re.split(rf"({SIZE}|{NUMBER} %|{NUMBER})", line.strip())
    parts = []
    for word in words:
        if re.fullmatch(SIZE, word):
            parts.append(SIZE)
        elif word.endswith(" %"):
            parts.append(SHARES)
        elif re.fullmatch(NUMBER, word):
            parts.append(NUMBER)
        else:
            parts.append(re.sub(r"(?:\\ )+", r"\\s+", re.escape(word)))
    return "".join(parts)


class Reader:
    """Whoever reads the guide and types what it says, below a folder of their own."""

    def __init__(self, tslab: str, place: Path, port: int, pid: int) -> None:
        self.tslab = tslab
        self.place = place
        self.port = port
        self.pid = pid

    def types(self, command: str, status: int = 0) -> str:
        typed = re.sub(rf"\b{PID}\b", str(self.pid), command)
        typed = re.sub(r"\btslab (?=[a-z])", f"{self.tslab} ", typed)
        typed = typed.replace(":9464/", f":{self.port}/")
        begun = time.monotonic()
        done = subprocess.run(
            ["bash", "-euc", typed],
            cwd=self.place,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        took = time.monotonic() - begun
        said = done.stdout + done.stderr
        assert done.returncode == status, f"{typed}: status {done.returncode}\n{said}"
        assert took < MOST_S, f"{typed} took {took:.1f} s"
        return done.stdout

    def asks(self, question: Question, status: int = 0) -> str:
        """Types all its commands; the status is that of the last."""
        for command in question.commands[:-1]:
            self.types(command)
        answer = self.types(question.commands[-1], status)
        for line in question.lines:
            assert re.search(pattern(line), answer), f"{line}\nis not in\n{answer}"
        return answer


def mib(text: str) -> float:
    number, unit = text.split()
    return float(number) * UNITS[unit] / MIB


def sizes(answer: str, words: str) -> list[float]:
    """The sizes in the first line that has these words, in MiB."""
    line = next(line for line in answer.splitlines() if words in line)
    return [mib(size) for size in re.findall(SIZE, line)]


def is_about(value: float, wanted: float, share: float) -> bool:
    return abs(value - wanted) <= share * wanted


@contextmanager
def served(tslab: str, place: Path) -> Iterator[int]:
    """The port of a server with a history of its own."""
    command = [tslab, "serve", "--listen", "127.0.0.1:0", "--history", str(place / "history.db")]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert server.stderr is not None
    assert server.stdout is not None
    try:
        found = re.search(r":(\d+)", server.stderr.readline())
        assert found is not None
        yield int(found[1])
    finally:
        server.kill()
        server.communicate()


def wait_for(what: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not what():
        assert time.monotonic() < end
        time.sleep(0.05)


def all_stacks(reader: Reader) -> str:
    """The whole profile, for a message."""
    asked = [reader.tslab, "profile", str(reader.pid), "--seconds", "0", "--format", "folded"]
    return subprocess.check_output([*asked, "-o", "-"], text=True)


def check_growth(reader: Reader, asker: Asker, asked: dict[str, Question]) -> None:
    """Before and after the cache grew."""
    growth, peak = asked["Who grew?"], asked["What was the peak made of?"]
    deploy = asked["Did the last deploy change it?"]
    pool = reader.asks(asked["Which thread pool holds memory?"])
    held = int(pool.splitlines()[0].rsplit(" ", 1)[1]) / MIB
    assert is_about(held, POOL_MIB, CHANCE), pool + all_stacks(reader)
    reader.types(f"tslab stats {PID} --json >old.json")
    reader.types(growth.commands[0])
    recording = subprocess.Popen(
        [reader.tslab, "record", str(reader.pid), "-o", str(reader.place / "DIR")],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    wait_for((reader.place / "DIR/peak").exists)
    asker.does("grow")
    grown = reader.asks(Question(growth.heading, growth.commands[1:], growth.lines))
    assert is_about(sizes(grown, "fill_cache")[-1], CACHE_MIB, CHANCE), grown
    reader.asks(deploy, status=1)
    time.sleep(0.5)  # several looks of the recording
    recording.terminate()
    assert recording.wait(timeout=60) == 0
    made_of = reader.asks(peak)
    parts = [line.rsplit(" ", 1) for line in made_of.splitlines()]
    largest, size = max(parts, key=lambda part: int(part[1]))
    assert "fill_cache" in largest, made_of
    assert is_about(int(size) / MIB, CACHE_MIB, CHANCE), made_of


def check_waste(reader: Reader, asker: Asker, asked: dict[str, Question]) -> None:
    """What is free between live rows, and what is idle, when the cache is gone."""
    asker.does("thin")
    lived = reader.asks(asked["How long do objects of a function live?"])
    shares = {line.split()[0]: line for line in lived.splitlines() if "load_row" in line}
    assert is_about(sizes(shares["freed"], "freed")[0], POOL_MIB * 3 / 4, CHANCE), lived
    # A quarter of the samples: twice the chance.
    assert is_about(sizes(shares["live"], "live")[0], POOL_MIB / 4, 2 * CHANCE), lived
    asker.does("drop")
    free_mib = POOL_MIB * 3 / 4

    # The thread that freed it is silent; the next report is that of a request.
    def is_told() -> bool:
        told = reader.types(f"tslab why {PID}")
        return "units at hand" in told and sizes(told, "units at hand")[0] >= 0.5 * CACHE_MIB

    wait_for(is_told)
    why = reader.asks(asked["Why is RSS not live?"])
    assert sizes(why, "free in slabs")[0] >= 0.5 * free_mib, why
    # Beside the rows' there is free memory of requests.
    fragmented = sizes(reader.asks(asked["Is it fragmentation?"]), "free in slabs")[1]
    assert 0.9 * free_mib <= fragmented <= 1.6 * free_mib, fragmented
    idle = sizes(why, "units at hand")[0]
    back = reader.asks(asked["What would go back now?"])
    assert sizes(back, "gave")[0] >= 0.8 * idle, back


def check_labels(answer: str) -> None:
    """The rows of the pool are in no epoch; all that the requests left is in theirs."""
    labels = {past["label"]: past["moments"] for past in json.loads(answer)["labels"]}
    assert set(labels) == {"default", "GET /upload"}, labels
    held = labels["default"][0][1] / MIB
    assert is_about(held, POOL_MIB, 0.1), labels


def check_all(reader: Reader, asker: Asker, asked: dict[str, Question]) -> None:
    past = f"curl -s http://127.0.0.1:9464/api/v1/processes/{PID}/history"
    wait_for(lambda: "[[" in reader.types(past))
    reader.asks(asked["Since when?"])
    check_labels(reader.asks(asked["Which label grew during the night?"]))
    leaks = reader.asks(asked["Which request leaks?"], status=1)
    assert leaks.startswith("epoch"), leaks
    check_growth(reader, asker, asked)
    check_waste(reader, asker, asked)
    asker.child.kill()
    asker.child.wait()
    reader.asks(asked["What lives in a process that crashed?"])


def main(tslab: str, preload: str, program: str, bursts: str, guide: str) -> None:
    os.environ["TSLAB_LIBRARY"] = preload
    asked = {question.heading: question for question in questions(Path(guide))}
    assert len(asked) == QUESTIONS, asked.keys()
    asker = Asker(program, preload)
    wait_for(lambda: any(Path("/dev/shm").glob(f"tslab.{asker.child.pid}.*")))
    try:
        time.sleep(2)  # requests that leave objects, for longer than a look lasts
        with tempfile.TemporaryDirectory() as folder, served(tslab, Path(folder)) as port:
            reader = Reader(tslab, Path(folder), port, asker.child.pid)
            check_all(reader, asker, asked)
            (Path(folder) / "server").symlink_to(bursts)
            reader.asks(asked["Where does a scope belong?"])
    finally:
        asker.end()
        for left in Path("/dev/shm").glob(f"tslab.{asker.child.pid}.*"):
            left.unlink()


if __name__ == "__main__":
    main(*sys.argv[1:])
