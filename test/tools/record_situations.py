"""Records the situations of test/tools/situations anew: what a program in each of them told.

record_situations.py TSLAB PRELOAD PATIENT RUNNER SERVER [NAME...]

TSLAB: the command; PRELOAD: the library; PATIENT: of patient.c; RUNNER: of runner.c; SERVER: of
examples/server. Each NAME.toml has what an expert says of the situation, NAME.tar.gz two looks at
the program, a second apart: folders of `tslab record`, without what nobody reads there. How
processes are numbered, and when the machine was started, is all that they tell of the machine.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from command import first_line, process
from servers import redis

PLACE = Path(__file__).parent / "situations"
PATIENCE_SECONDS = 30
# With fewer a process has no statistics file.
ADDRESSES_KIB = 4_000_000

# Of struct tslab_stats_header and tslab_stats_table (include/tslab_stats.h).
FILE_BYTES_AT = 16
TABLES = struct.Struct("<QII")
TABLES_AT = 24
FIELDS = struct.Struct("<QII")
FIELDS_AT = 40
ROWS_PLACE = struct.Struct("<QIII")
ROWS_PLACE_AT = 16

SMAPS_FIELDS = ("Rss:", "AnonHugePages:", "Swap:")

DELETE = """
for number = 0, 599999 do
  if number % 16 ~= 0 then redis.call("DEL", "key:" .. number) end
end
"""

ROWS = """
rows = [(n, str(n)) for n in range(2_000_000)]
print("ready", flush=True)
input()
"""


class Programs:
    """Where they are."""

    def __init__(self, preload: str, patient: str, runner: str, server: str) -> None:
        self.preload = preload
        self.patient = patient
        self.runner = runner
        self.server = server

    @contextmanager
    def run(self, seconds: float, *command: str) -> Iterator[int]:
        """A program that has said that it is ready, so long ago."""
        with process(*command, preload=self.preload) as child:
            assert first_line(child) == "ready\n"
            time.sleep(seconds)
            yield child.pid

    def does(self, situation: str, *environment: str, seconds: float = 0.5) -> Recordable:
        return self.run(seconds, "env", *environment, self.patient, situation)

    def hurries(self, situation: str, *environment: str) -> Recordable:
        return self.run(1, "env", *environment, self.runner, situation)

    def lacks_addresses(self) -> Recordable:
        return self.run(0.5, "sh", "-c", f"ulimit -v {ADDRESSES_KIB}; exec {self.patient} greedy")

    @contextmanager
    def serves(self) -> Iterator[int]:
        with process(self.server, "annotated", "100000000", preload=self.preload) as child:
            time.sleep(2)
            yield child.pid

    @contextmanager
    def deletes(self) -> Iterator[int]:
        """All keys but each 16th."""
        with tempfile.TemporaryDirectory() as folder, redis(self.preload, folder) as server:
            server.does("DEBUG", "POPULATE", "600000", "key", "200")
            server.ask("EVAL", DELETE, "0")
            time.sleep(2)
            yield server.pid

    @contextmanager
    def flushes(self) -> Iterator[int]:
        never = "TSLAB_HELPER=never"
        with tempfile.TemporaryDirectory() as folder, redis(self.preload, folder, never) as server:
            server.does("DEBUG", "POPULATE", "400000", "key", "200")
            server.does("FLUSHALL")
            time.sleep(1)
            yield server.pid


Recordable = AbstractContextManager[int]


def situations(programs: Programs) -> dict[str, Callable[[], Recordable]]:
    own = "TSLAB_PLACES=own"
    kept = ("TSLAB_HELPER=never", "TSLAB_CACHE_UNITS=64")
    python = (sys.executable, "-c", ROWS)
    return {
        "address_space_gone": programs.lacks_addresses,
        "batches_released": lambda: programs.hurries("batches"),
        "burst_without_helper": programs.flushes,
        "bursts_of_large_blocks": lambda: programs.hurries("bursts"),
        "bursts_without_delay": lambda: programs.hurries("bursts", "TSLAB_PURGE_DELAY_MS=0"),
        "cache_that_turns_over": lambda: programs.does("cache", seconds=5),
        "epochs_never_closed": lambda: programs.does("open", seconds=2),
        "keys_deleted": programs.deletes,
        "labels_of_ids": lambda: programs.does("users"),
        "large_blocks": lambda: programs.does("large"),
        "leak_in_own_epochs": lambda: programs.does("uploads", own, seconds=2),
        "leak_in_shared_epochs": lambda: programs.does(
            "uploads", "TSLAB_SAMPLE_BYTES=4K", seconds=4
        ),
        "leak_outside_of_epochs": lambda: programs.does("leaking", seconds=5),
        "locked_memory": lambda: programs.does("locked"),
        "one_thread_frees": lambda: programs.does("pipeline"),
        "piles_freed_at_once": lambda: programs.hurries("piles"),
        "purges_in_vain": lambda: programs.hurries("limited"),
        "python_arenas": lambda: programs.run(0.5, "env", "-u", "PYTHONMALLOC", *python),
        "server_at_work": programs.serves,
        "sessions_that_end": lambda: programs.does("sessions", own, seconds=3),
        "slabs_for_few_objects": lambda: programs.hurries("parsers"),
        "sleeping_threads": lambda: programs.does("threads", seconds=1.5),
        "sleeping_threads_without_helper": lambda: programs.does("threads", *kept, seconds=1.5),
        "tenant_at_its_limit": lambda: programs.does("tenant"),
        "tenants_at_work": lambda: programs.does("tenants", seconds=2),
        "threads_inside_closed_epochs": lambda: programs.does("inside", seconds=2),
        "threads_that_keep_units": lambda: programs.hurries("crew", "TSLAB_CACHE_UNITS=64"),
    }


@contextmanager
def recording(tslab: str, pid: int, place: Path) -> Iterator[Callable[[], None]]:
    """What it gives looks at the process, by each call: signal-1, signal-2, ..."""
    child = subprocess.Popen(
        [tslab, "record", str(pid), "-o", str(place)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert child.stderr is not None
    assert child.stderr.readline().startswith("tslab: recording process ")
    looks = 0

    def look() -> None:
        nonlocal looks
        looks += 1
        child.send_signal(signal.SIGUSR1)
        end = time.monotonic() + PATIENCE_SECONDS
        while not (place / f"signal-{looks}").exists():
            assert time.monotonic() < end, "nothing is recorded"
            time.sleep(0.01)

    try:
        yield look
    finally:
        child.terminate()
        child.communicate()


def looks_at(tslab: str, pid: int, place: Path) -> tuple[Path, Path]:
    with recording(tslab, pid, place) as look:
        look()
        time.sleep(1)
        look()
    return place / "signal-1", place / "signal-2"


def used(rows: bytes, row_bytes: int) -> bytes:
    """Up to the last row that is not 0; the first one stays."""
    count = -(-len(rows.rstrip(b"\0")) // row_bytes)
    return rows[: max(count, 1) * row_bytes]


def without_holes(path: Path) -> bytes:
    """The statistics file with its tables one behind the other, as long as they are used."""
    with path.open("rb") as file:

        def part(at: int, length: int) -> bytes:
            file.seek(at)
            return file.read(length)

        first = part(0, FIELDS_AT + FIELDS.size)
        tables_at, tables, table_bytes = TABLES.unpack_from(first, TABLES_AT)
        fields_at, fields, field_bytes = FIELDS.unpack_from(first, FIELDS_AT)
        head_bytes = max(tables_at + tables * table_bytes, fields_at + fields * field_bytes)
        out = bytearray(part(0, head_bytes))
        for place in range(tables_at, tables_at + tables * table_bytes, table_bytes):
            at, row_bytes, most, rows = ROWS_PLACE.unpack_from(out, place + ROWS_PLACE_AT)
            out += bytes(-len(out) % 64)
            kept = used(part(at, rows * row_bytes), row_bytes)
            row = (len(out), row_bytes, most, len(kept) // row_bytes)
            ROWS_PLACE.pack_into(out, place + ROWS_PLACE_AT, *row)
            out += kept
    struct.pack_into("<Q", out, FILE_BYTES_AT, len(out))
    return bytes(out)


def mappings(smaps: str) -> str:
    """Those of which something is resident, and what `tslab why` reads of them."""
    out = []
    for mapping in re.split(r"(?m)^(?=[0-9a-f]+-)", smaps):
        head, *lines = mapping.splitlines() or [""]
        fields = [line for line in lines if line.startswith(SMAPS_FIELDS)]
        if any(int(line.split()[1]) > 0 for line in fields):
            # Of a file its name, but for the statistics file, which is known by its place.
            name = re.sub(r"/(?!dev/shm/tslab\.)\S*/", "/", head)
            out += [name, *fields]
    return "\n".join(out) + "\n"


def about(path: Path) -> str:
    told = json.loads(path.read_text(encoding="utf-8"))
    told["program"] = Path(told["program"]).name
    return json.dumps(told, indent=2) + "\n"


def add(archive: tarfile.TarFile, name: str, data: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size = len(data)
    archive.addfile(entry, io.BytesIO(data))


def keep(name: str, looks: dict[str, Path]) -> int:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for look, folder in looks.items():
            add(archive, f"{look}/statistics", without_holes(folder / "statistics"))
            smaps = (folder / "smaps").read_text(encoding="utf-8")
            add(archive, f"{look}/smaps", mappings(smaps).encode())
            add(archive, f"{look}/about.json", about(folder / "about.json").encode())
    packed = gzip.compress(data.getvalue(), 9, mtime=0)
    (PLACE / f"{name}.tar.gz").write_bytes(packed)
    return len(packed)


def main(tslab: str, preload: str, patient: str, runner: str, server: str, *names: str) -> int:
    if shutil.which("redis-server") is None:
        print("redis-server is not installed", file=sys.stderr)
        return 1
    os.environ.pop("TSLAB_CONF", None)
    everything = situations(Programs(preload, patient, runner, server))
    for name in names or everything:
        with tempfile.TemporaryDirectory() as folder, everything[name]() as pid:
            before, now = looks_at(tslab, pid, Path(folder) / "record")
            print(f"{name}: {keep(name, {'before': before, 'now': now})} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
