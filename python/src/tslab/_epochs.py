"""Epochs: which work has which memory.

They are closed, never released: the interpreter keeps objects that the program cannot see, such as
interned strings and free lists.
"""

from __future__ import annotations

import ctypes
import errno
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum

from tslab._library import (
    DEFAULT,
    NO_EPOCH,
    RawOptions,
    RawScope,
    RawSurvivors,
    call,
    check,
    refusal,
    refused,
)
from tslab._statistics import EpochStats, epoch_stats


@dataclass(frozen=True)
class Survivors:
    """What outlived an epoch that was closed, and is still valid. `pages` have 4 KiB."""

    objects: int
    bytes: int
    pages: int


class Place(Enum):
    """Where the objects of an epoch lie.

    AUTO is as option `places` says: by default, epochs of a label share once some of it were closed
    that were small and short, or that their objects outlived. OWN is memory of the epoch's own,
    whose survivors are counted. SHARED is the shared epoch of its label, from the first one on.
    """

    AUTO = 0
    OWN = 1
    SHARED = 2


class Epoch:
    """A lifetime that the program declares, open until `close`.

    What threads allocate while they are inside (`scope`) lies together, and the memory goes back
    when the last of it is freed. The label has at most 63 bytes, and is the same for epochs of the
    same kind. The limit counts memory, that of children included; what exceeds it raises
    MemoryError.
    """

    def __init__(
        self,
        label: str,
        *,
        parent: Epoch | None = None,
        hard_limit_bytes: int = 0,
        place: Place = Place.AUTO,
    ) -> None:
        self.id = NO_EPOCH
        self.survivors: Survivors | None = None
        if "\0" in label:
            raise ValueError(f"a label has no character 0: {label!r}")
        options = RawOptions(
            size=ctypes.sizeof(RawOptions),
            parent=DEFAULT if parent is None else parent.id,
            hard_limit_bytes=hard_limit_bytes,
            place=place.value,
        )
        opened = call("tslab_epoch_open", label.encode(), ctypes.byref(options))
        if opened == NO_EPOCH:
            raise refused()
        assert isinstance(opened, int)
        self.id = opened

    @contextmanager
    def scope(self) -> Iterator[Epoch]:
        """The calling thread's stay in the epoch.

        Stays nest. No `await` and no `yield` may come in between: other work of the thread would be
        in the epoch, too.
        """
        with _inside(self.id):
            yield self

    def stats(self) -> EpochStats:
        """What is known of it. Takes time in proportion to its extent (tslab.h)."""
        return epoch_stats(self.id)

    def close(self) -> Survivors:
        """Ends allocation in the epoch. What lives in it stays valid.

        Of an epoch that shares its label's memory no survivors are counted.
        """
        raw = call("tslab_epoch_close", self.id)
        assert isinstance(raw, RawSurvivors)
        if raw.error != 0:
            raise refusal(raw.error)
        self.survivors = Survivors(raw.objects, raw.bytes, raw.pages)
        return self.survivors

    def __repr__(self) -> str:
        return f"<tslab.Epoch {self.id:#x}>"


class _Stays(threading.local):
    """The calling thread's scopes, the innermost one last.

    One that was not left in time stays here: the library refers to it. The library would report an
    attempt to leave it as misuse, and end the process.
    """

    def __init__(self) -> None:
        self.scopes: list[RawScope] = []


_stays = _Stays()


@contextmanager
def _inside(epoch: int) -> Iterator[None]:
    scope = RawScope()
    # Looked up and grown before the scope is entered: what the thread keeps lies outside.
    scopes = _stays.scopes
    scopes.append(scope)
    error = call("tslab_scope_enter", ctypes.byref(scope), epoch)
    if error != 0:
        scopes.pop()
    check(error)
    try:
        yield
    finally:
        if _stays.scopes is not scopes or scopes[-1] is not scope:
            raise refusal(errno.EPERM)
        check(call("tslab_scope_leave", ctypes.byref(scope)))
        scopes.pop()


@contextmanager
def epoch(
    label: str,
    *,
    parent: Epoch | None = None,
    hard_limit_bytes: int = 0,
    place: Place = Place.AUTO,
) -> Iterator[Epoch]:
    """Opens an epoch, stays in it, and closes it. `survivors` then says what outlived it."""
    opened = Epoch(label, parent=parent, hard_limit_bytes=hard_limit_bytes, place=place)
    try:
        with opened.scope():
            yield opened
    finally:
        opened.close()


@contextmanager
def outside() -> Iterator[None]:
    """A stay outside of all epochs: a way out for objects that are meant to survive."""
    with _inside(DEFAULT):
        yield


def epoch_of(address: int) -> int | None:
    """The id of the epoch in which the block at an address lies.

    It is 0 for the default epoch, and None where no block is.
    """
    found = call("tslab_epoch_of", address)
    assert isinstance(found, int)
    return None if found == NO_EPOCH else found
