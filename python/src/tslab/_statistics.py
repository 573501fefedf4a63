"""What is known of the process's memory, and of its epochs."""

from __future__ import annotations

import ctypes
import json
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from tslab._library import (
    VISIT,
    WRITE,
    RawEpochStats,
    RawStats,
    TslabError,
    call,
    check,
    loaded,
)


@dataclass(frozen=True)
class Stats:
    """What the process's memory is made of.

    `resident_bytes` is `live + hot + free + cached + dirty + metadata - untouched`. Exact while no
    other thread allocates or frees.
    """

    live_objects: int
    live_bytes: int
    large_bytes: int
    hot_bytes: int
    free_bytes: int
    cached_bytes: int
    dirty_bytes: int
    metadata_bytes: int
    untouched_bytes: int
    resident_bytes: int


class State(Enum):
    """Where an epoch is in its life."""

    OPEN = 0
    CLOSED = 1
    RELEASED = 2
    SHARED = 3


@dataclass(frozen=True)
class EpochStats:
    """What is known of an epoch.

    Objects and bytes do not include those of children, `held_bytes` does. `place` is the id of the
    epoch where the objects lie: itself, or the shared epoch of its label, whose figures objects,
    bytes, threads and scopes are then.
    """

    epoch: int
    parent: int
    label: str
    state: State
    threads: int
    scopes: int
    children: int
    live_objects: int
    live_bytes: int
    held_bytes: int
    age_ms: int
    closed_ms: int
    late: int
    place: int
    peak_bytes: int
    allocated_objects: int
    allocated_bytes: int


def captures_malloc() -> bool:
    """Whether epochs hold what the process allocates. False without the library."""
    return loaded() is not None and bool(call("tslab_captures_malloc"))


def version() -> str:
    """The library's version."""
    text = call("tslab_version")
    assert isinstance(text, bytes)
    return text.decode()


def stats() -> Stats:
    """What the process's memory is made of. Takes time in proportion to it."""
    raw = RawStats(size=ctypes.sizeof(RawStats))
    check(call("tslab_stats_get", ctypes.byref(raw)))
    return Stats(**{name: getattr(raw, name) for name in Stats.__dataclass_fields__})


def report() -> dict[str, object]:
    """The same, and every epoch that is not over, as one tree for JSON."""
    pieces: list[bytes] = []
    write = WRITE(lambda text, length, _: pieces.append(ctypes.string_at(text, length)))
    call("tslab_stats_json", write, None)
    told: dict[str, object] = json.loads(b"".join(pieces))
    return told


def epoch_stats(epoch: int) -> EpochStats:
    """What is known of the epoch of an id. Raises ESTALE when it is over."""
    raw = RawEpochStats(size=ctypes.sizeof(RawEpochStats))
    check(call("tslab_epoch_get_stats", epoch, ctypes.byref(raw)))
    values = {name: getattr(raw, name) for name in EpochStats.__dataclass_fields__}
    values["label"] = raw.label.decode(errors="replace")
    values["state"] = State(raw.state)
    return EpochStats(**values)


def epochs() -> list[EpochStats]:
    """Every epoch that is not over, those that were closed and still hold objects included."""
    found: list[int] = []

    def keep(epoch: int, _: object) -> int:
        found.append(epoch)
        return 0

    check(call("tslab_epochs_each", VISIT(keep), None))
    return list(_those_left(found))


def _those_left(found: list[int]) -> Iterator[EpochStats]:
    for epoch in found:
        try:
            yield epoch_stats(epoch)
        except TslabError:
            continue  # it ended meanwhile


def trim(keep_bytes: int = 0) -> bool:
    """Gives free memory back to the system, but for `keep_bytes` bytes. Whether there was some."""
    return call("tslab_trim", keep_bytes) != 0


def option(name: str) -> str:
    """The value of an option of docs/options.md. Raises ENOENT for an unknown name."""
    value = ctypes.create_string_buffer(128)
    check(call("tslab_option_get", name.encode(), value, len(value)))
    return value.value.decode()


def set_option(name: str, value: str) -> None:
    """Sets an option. Raises ENOENT for an unknown name, EINVAL for a value that does not fit."""
    check(call("tslab_option_set", name.encode(), value.encode()))
