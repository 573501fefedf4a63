"""Live, held and resident are the same figures whichever face of the command is asked.

faces.py TSLAB PRELOAD CHECK [PROGRAM]

CHECK is one of those below. The programs are stopped while they are asked: all faces read the same
file. Where a figure has a truth of its own, in the program or in smaps, it is met within 2 %.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from command import Command, first_line, needed, process, status_of, stop
from live import KIB, own_mappings_bytes
from prometheus import daemon
from servers import memcached, redis, store

HERE = Path(__file__).parent

MOST_OFF = 0.02
SAMPLES = {"TSLAB_SAMPLE_BYTES": "16K", "TSLAB_SAMPLE_RATE": "0"}
# How epochs of a label ended: the figures of `stats`, and their metrics.
ENDS = {
    "ended": "tslab_label_ended_epochs",
    "ended_bytes": "tslab_label_ended_bytes",
    "ended_survivor_bytes": "tslab_label_ended_survivor_bytes",
    "ended_pinned_bytes": "tslab_label_ended_pinned_bytes",
    "shares": "tslab_label_shares",
}
# Clients of a server under load, and for how long; they make it allocate more often than this.
CLIENTS = 20
LOAD_SECONDS = 1.5
LOAD_ALLOCATIONS = 5000
# Its store is of large blocks: under load it allocates seldom, and stores more often than this.
MEMCACHED_VALUES = 200_000
LOAD_VALUES = 5000

# A figure of `top` has one digit after the point.
ROUNDED = 0.051
UNITS = {"B": 1, "KiB": KIB, "MiB": KIB**2, "GiB": KIB**3}
SAMPLE = re.compile(r"(\w+)\{(.*)\} (\S+)")
DEFAULT_EPOCH = re.compile(r'^ *(\S+ \S+) +(\S+ \S+) .*"default"', re.MULTILINE)
LABEL = re.compile(r'(\w+)="([^"]*)"')

# Many objects, of which few are left: slabs with free memory.
SPARSE = """
blocks = [bytes(200 + i % 7) for i in range(700_000)]
del blocks[::2], blocks[::3], blocks[::5]
blocks += [bytes(5 << 20), bytes(9 << 20)]
print("ready", flush=True)
input()
"""


class Faces:
    """All that the command says of a stopped process."""

    def __init__(self, tslab: Command, pid: int) -> None:
        def ask(*words: str, status: int = 0) -> Any:
            return tslab.json(*words, status=status)

        self.pid = str(pid)
        self.stats = ask("stats", self.pid)
        self.totals = self.stats["totals"]
        self.epochs = ask("epochs", self.pid, "--all")["epochs"]
        self.why = ask("why", self.pid)
        self.parts = {part["part"]: part["bytes"] for part in self.why["parts"]}
        self.watch = json.loads(
            tslab.run("watch", self.pid, "-n", "1", "--interval", "0.01", "--json")
        )
        # One that ended may have had the same number.
        running = [one for one in ask("ps")["processes"] if one["life"] == "alive"]
        self.listed = next(one for one in running if one["pid"] == pid)
        self.top = self.of_top(tslab)
        self.samples, self.answers = self.served(tslab)

    def of_top(self, tslab: Command) -> str:
        """Its frame where no other process is, with room for every epoch."""
        file = Path(self.listed["path"])
        with tempfile.TemporaryDirectory(dir=file.parent) as alone:
            (Path(alone) / file.name).hardlink_to(file)
            return tslab.run("top", "--batch", "-n", "1", "--directory", alone, LINES="1000")

    def served(self, tslab: Command) -> tuple[list[tuple[str, dict[str, str], float]], Any]:
        """`/metrics`, and the answers of which the page is made."""
        words = [tslab.path, "serve", "--history", "none", "--listen", "127.0.0.1:0"]
        with daemon(words, stderr=subprocess.PIPE) as child:
            said = child.stderr
            assert said is not None
            url = said.readline().removeprefix("tslab: serving ").strip().rstrip("/")

            def get(path: str) -> str:
                with urllib.request.urlopen(f"{url}/{path}", timeout=30) as reply:
                    return str(reply.read().decode())

            one = f"api/v1/processes/{self.pid}"
            answers = {
                "stats": json.loads(get(one)),
                "epochs": json.loads(get(f"{one}/epochs?all=1"))["epochs"],
                "why": json.loads(get(f"{one}/why")),
                "doctor": json.loads(get(f"{one}/doctor")),
            }
            samples = []
            for line in get("metrics").splitlines():
                found = SAMPLE.fullmatch(line)
                labels = dict(LABEL.findall(found[2])) if found else {}
                if found and labels.pop("pid", None) == self.pid:
                    samples.append((found[1], labels, float(found[3])))
            return samples, answers

    def metric(self, name: str, **labels: str) -> float:
        """The sum of all series that have these labels."""
        values = [
            value
            for known, of, value in self.samples
            if known == name and labels.items() <= of.items()
        ]
        assert values, (name, labels, self.pid, sorted({known for known, _, _ in self.samples}))
        return sum(values)

    def sum(self, figure: str) -> int:
        return sum(epoch[figure] for epoch in self.epochs)


def same(what: str, *figures: float) -> None:
    assert len(set(figures)) == 1, (what, figures)


def close(what: str, figure: float, truth: float) -> None:
    assert abs(figure - truth) <= MOST_OFF * truth, (what, figure, truth)


def shows(what: str, text: str, figure: float) -> None:
    """A figure in its unit, with as many digits as people read."""
    number, unit = text.split()
    assert abs(float(number) - figure / UNITS[unit]) <= ROUNDED, (what, text, figure)


def check_live(faces: Faces) -> None:
    live = faces.totals["live_bytes"]
    same(
        "live bytes",
        live,
        faces.listed["live_bytes"],
        faces.watch["live_bytes"],
        sum(epoch["live"]["bytes"] for epoch in faces.epochs),
        sum(label["live_bytes"] for label in faces.why["labels"]),
        faces.parts["live"] + faces.parts["large"],
        faces.metric("tslab_live_bytes"),
        faces.metric("tslab_epoch_live_bytes"),
    )
    same(
        "live objects",
        faces.totals["live_objects"],
        faces.watch["live_objects"],
        sum(epoch["live"]["objects"] for epoch in faces.epochs),
        faces.metric("tslab_live_objects"),
        faces.metric("tslab_epoch_live_objects"),
    )
    same(
        "large",
        faces.totals["large_bytes"],
        faces.parts["large"],
        faces.metric("tslab_large_bytes"),
    )


def check_classes(faces: Faces) -> None:
    """Each class is counted, and with what is in none they are all that lives."""
    classes = faces.stats["classes"]
    in_classes = sum(one["live"] * one["bytes"] for one in classes)
    same("classes", in_classes, faces.metric("tslab_class_live_bytes"))
    in_cells = faces.stats["in_cells"]["bytes"]
    same(
        "all classes",
        in_classes + in_cells + faces.totals["large_bytes"],
        faces.totals["live_bytes"],
    )
    free = {one["bytes"]: one["free_bytes"] for one in faces.why["classes"]}
    for one in classes:
        spare = one["slabs"] * one["slab_bytes"] - one["out"] * one["bytes"]
        assert 0 <= spare <= faces.totals["spare_bytes"], (one, faces.totals)
        assert free.get(one["bytes"], spare) == spare, (one, free)


def check_held(faces: Faces) -> None:
    totals = faces.totals
    same(
        "held",
        totals["held_bytes"],
        totals["live_bytes"] + totals["hot_bytes"] + totals["spare_bytes"],
        faces.why["held_bytes"],
        faces.sum("own_bytes"),
        faces.metric("tslab_held_bytes"),
        faces.metric("tslab_epoch_held_bytes"),
    )
    for epoch in faces.epochs:
        assert epoch["live"]["bytes"] <= epoch["own_bytes"] <= epoch["held_bytes"], epoch
    for label in faces.why["labels"]:
        of_label = faces.metric("tslab_epoch_held_bytes", epoch=label["label"])
        same(f"held by {label}", label["held_bytes"], of_label)
    default = next(epoch for epoch in faces.epochs if epoch["epoch"] == 0)
    assert f"\n{faces.pid} " in faces.top, faces.top
    shown = DEFAULT_EPOCH.search(faces.top)
    assert shown, faces.top
    shows("held in top", shown[1], default["held_bytes"])
    shows("live in top", shown[2], default["live"]["bytes"])


def check_epochs(faces: Faces) -> None:
    totals = faces.totals
    for state, name in (("open", "open"), ("shared", "shared")):
        same(
            f"epochs {state}",
            totals[f"epochs_{name}"],
            sum(epoch["state"] == state for epoch in faces.epochs if epoch["epoch"] != 0),
            faces.metric("tslab_epochs", state=state),
        )
    same("open", totals["epochs_open"], faces.listed["epochs_open"], faces.watch["epochs_open"])
    ours = [
        epoch
        for epoch in faces.epochs
        if epoch["epoch"] != 0 and epoch["state"] in ("open", "closed")
    ]
    same("epochs by label", len(ours), faces.metric("tslab_label_epochs"))


def check_ends(faces: Faces) -> int:
    """How many labels have epochs that ended."""
    ended = [label for label in faces.stats["labels"] if label["ended"]]
    for label in ended:
        for figure, metric in ENDS.items():
            told = faces.metric(metric, epoch=label["label"])
            same(f"{figure} of {label['label']}", label[figure], told)
    return len(ended)


def check_sites(tslab: Command, faces: Faces) -> None:
    """What call sites hold, named or not, is what the profile says that lives."""
    samples = tslab.json("profile", faces.pid, "--seconds", "0")["samples"]
    live = sum(sample["bytes"] for sample in samples)
    assert live > 0, samples
    close("sites", faces.metric("tslab_site_live_bytes", sampled="all"), live)


def check_resident(tslab: Command, faces: Faces) -> None:
    """No part is below 0 or above the whole, and the whole is what the system counts."""
    resident, missing = faces.why["resident_bytes"], faces.why["not_resident_bytes"]
    same("resident", resident, own_mappings_bytes(tslab, faces.pid))
    same("parts", sum(faces.parts.values()), resident + missing)
    for part, bytes_ in faces.parts.items():
        assert 0 <= bytes_ <= resident + missing, (part, faces.why)
    assert faces.parts["residual"] <= MOST_OFF * resident, faces.why
    same("rss", faces.stats["rss_bytes"], faces.listed["rss_bytes"])
    same(
        "rss",
        faces.stats["rss_bytes"],
        faces.watch["rss_bytes"],
        faces.metric("tslab_resident_bytes"),
    )
    close("rss", faces.stats["rss_bytes"], faces.why["rss_bytes"])


def check_page(faces: Faces) -> None:
    """The page shows the answers of the server, which are those of the commands."""
    assert faces.stats["totals"] == faces.answers["stats"]["totals"], faces.answers
    own = [[one["epoch"], one["held_bytes"], one["own_bytes"], one["live"]] for one in faces.epochs]
    shown = faces.answers["epochs"]
    assert own == [
        [one["epoch"], one["held_bytes"], one["own_bytes"], one["live"]] for one in shown
    ]


def check_why(faces: Faces) -> None:
    """The server's account of the memory is the command's, on the page and in the metrics."""
    shown = faces.answers["why"]
    for figure in ("resident_bytes", "not_resident_bytes", "held_bytes", "parts"):
        assert shown[figure] == faces.why[figure], (figure, shown, faces.why)
    for part, bytes_ in faces.parts.items():
        same(f"part {part}", bytes_, faces.metric("tslab_why_bytes", part=part))
    missing = faces.metric("tslab_why_not_resident_bytes")
    same("not resident", faces.why["not_resident_bytes"], missing)
    doctor = faces.answers["doctor"]
    not_checked = {one["cause"] for one in doctor["not_checked"]}
    causes = Counter(finding["cause"] for finding in doctor["findings"])
    for name, labels, findings in faces.samples:
        if name == "tslab_findings" and labels["cause"] not in not_checked:
            same(f"findings of {labels['cause']}", findings, causes[labels["cause"]])


@contextmanager
def stopped(tslab: Command, pid: int) -> Iterator[Faces]:
    stop(pid)
    try:
        faces = Faces(tslab, pid)
        check_live(faces)
        check_classes(faces)
        check_held(faces)
        check_epochs(faces)
        check_ends(faces)
        check_resident(tslab, faces)
        check_page(faces)
        check_why(faces)
        yield faces
    finally:
        os.kill(pid, signal.SIGCONT)


def check_holder(tslab: Command, _: str, holder: str) -> None:
    """Every kind of memory: what the program counted itself is what lives."""
    with process(holder) as child:
        truth = json.loads(first_line(child))
        with stopped(tslab, child.pid) as faces:
            close("live", faces.totals["live_bytes"], truth["live_bytes"])
            close("objects", faces.totals["live_objects"], truth["live_objects"])
            same("open", faces.totals["epochs_open"], truth["epochs_open"])
            assert faces.totals["epochs_shared"] == 1, faces.totals
            large = {epoch["label"]: epoch["held_bytes"] for epoch in faces.epochs}
            assert large["tenant"] > large["task"] >= 12 * (3 << 20), large


def check_sparse(tslab: Command, preload: str) -> None:
    """Slabs of which the larger part is free: held, and not live."""
    python = ("env", "PYTHONMALLOC=malloc", sys.executable, "-c", SPARSE)
    with process(*python, preload=preload) as child:
        assert first_line(child) == "ready\n"
        with stopped(tslab, child.pid) as faces:
            assert faces.totals["spare_bytes"] > 64 * KIB**2, faces.totals


def check_redis(tslab: Command, preload: str) -> None:
    """What it says of its own memory is what lives; under load, when that changes, all agree."""
    needed("redis-server", "redis-benchmark")
    with tempfile.TemporaryDirectory() as folder, redis(preload, folder) as server:
        server.does("DEBUG", "POPULATE", "400000", "key", "200")
        server.does("DEBUG", "POPULATE", "4000", "more", "200")
        used = server.used_bytes()
        with stopped(tslab, server.pid) as faces:
            close("live of redis", faces.totals["live_bytes"], used)
        with server.under_load(CLIENTS):
            time.sleep(LOAD_SECONDS)
            with stopped(tslab, server.pid) as busy:
                more = busy.stats["allocations"] - faces.stats["allocations"]
                assert more > LOAD_ALLOCATIONS, "there was no load"


def check_memcached(tslab: Command, preload: str) -> None:
    """What it says of its slabs and tables is what lives; under load all agree."""
    needed("memcached")
    with tempfile.TemporaryDirectory() as folder, memcached(preload, folder) as server:
        server.fill(MEMCACHED_VALUES)
        used = server.used_bytes()
        with stopped(tslab, server.pid) as faces:
            close("live of memcached", faces.totals["live_bytes"], used)
        with server.under_load(CLIENTS):
            time.sleep(LOAD_SECONDS)
            with stopped(tslab, server.pid):
                pass
        stored = server.figures()["cmd_set"] - MEMCACHED_VALUES
        assert stored > LOAD_VALUES, "there was no load"


def check_written(faces: Faces) -> None:
    """The program wrote to all that lives: at most what is free is not resident."""
    free = sum(faces.parts.values()) - faces.parts["live"] - faces.parts["large"]
    assert faces.why["not_resident_bytes"] <= free, faces.why


def check_store(tslab: Command, preload: str, blocks: int, *interpreter: str) -> None:
    """By what its blocks say, what lives has grown; under load all agree."""

    def live_bytes() -> int:
        return int(tslab.json("stats", str(server.pid))["totals"]["live_bytes"])

    with tempfile.TemporaryDirectory() as folder, store(preload, folder, *interpreter) as server:
        used, live = server.used_bytes(), live_bytes()
        server.put(blocks)
        used = server.used_bytes() - used
        with stopped(tslab, server.pid) as faces:
            close("blocks", faces.totals["live_bytes"] - live, used)
            check_written(faces)
        with server.under_load(CLIENTS):
            time.sleep(LOAD_SECONDS)
            with stopped(tslab, server.pid) as busy:
                more = busy.stats["allocations"] - faces.stats["allocations"]
                assert more > LOAD_ALLOCATIONS, "there was no load"
                check_written(busy)


def check_python(tslab: Command, preload: str) -> None:
    """A thread a client; without the setting small objects are not malloc's."""
    python = ("env", "PYTHONMALLOC=malloc", sys.executable)
    check_store(tslab, preload, 200_000, *python, str(HERE / "store.py"))


def check_node(tslab: Command, preload: str) -> None:
    """Buffers, which its collector frees."""
    needed("node")
    check_store(tslab, preload, 5000, "node", str(HERE / "store.js"))


def check_server(tslab: Command, preload: str, server: str) -> None:
    """Threads in the middle of requests, in epochs that open and close."""
    with process(server, "annotated", "100000000", preload=preload, **SAMPLES) as child:
        time.sleep(LOAD_SECONDS)
        with stopped(tslab, child.pid) as faces:
            assert faces.stats["allocations"] > LOAD_ALLOCATIONS, faces.stats["allocations"]
            assert {"/item", "/login"} <= {epoch["label"] for epoch in faces.epochs}, faces.epochs
            assert check_ends(faces) > 0, faces.stats["labels"]
            check_sites(tslab, faces)


CHECKS: dict[str, Callable[..., None]] = {
    "holder": check_holder,
    "sparse": check_sparse,
    "redis": check_redis,
    "memcached": check_memcached,
    "python": check_python,
    "node": check_node,
    "server": check_server,
}


def main(tslab_path: str, preload: str, name: str, *program: str) -> int:
    return status_of(CHECKS[name], Command(tslab_path), preload, *program)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
