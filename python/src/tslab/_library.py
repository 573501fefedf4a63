"""The library's C functions, in the process that the library was loaded into at its start.

Nothing is loaded here: an allocator that comes along later is not the process's malloc.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from ctypes import (
    CFUNCTYPE,
    POINTER,
    Structure,
    c_bool,
    c_char_p,
    c_int,
    c_size_t,
    c_uint,
    c_uint64,
    c_void_p,
)
from functools import cache

DEFAULT = 0
NO_EPOCH = 2**64 - 1


class RawStats(Structure):
    """`tslab_stats` of tslab.h."""

    _fields_ = [
        ("size", c_size_t),
        ("live_objects", c_size_t),
        ("live_bytes", c_size_t),
        ("large_bytes", c_size_t),
        ("hot_bytes", c_size_t),
        ("free_bytes", c_size_t),
        ("cached_bytes", c_size_t),
        ("dirty_bytes", c_size_t),
        ("metadata_bytes", c_size_t),
        ("untouched_bytes", c_size_t),
        ("resident_bytes", c_size_t),
    ]


class RawOptions(Structure):
    """`tslab_epoch_options` of tslab.h."""

    _fields_ = [
        ("size", c_size_t),
        ("parent", c_uint64),
        ("soft_limit_bytes", c_size_t),
        ("hard_limit_bytes", c_size_t),
        ("on_limit", c_void_p),
        ("limit_context", c_void_p),
        ("purge", c_uint),
        ("threads", c_uint),
        ("first_cell_bytes", c_size_t),
        ("place", c_uint),
    ]


class RawSurvivors(Structure):
    """`tslab_survivors` of tslab.h."""

    _fields_ = [
        ("error", c_int),
        ("objects", c_size_t),
        ("bytes", c_size_t),
        ("pages", c_size_t),
    ]


class RawScope(Structure):
    """`tslab_scope` of tslab.h."""

    _fields_ = [
        ("epoch", c_uint64),
        ("heap", c_void_p),
        ("outer", c_void_p),
        ("depth", c_uint),
        ("before", c_uint64),
    ]


class RawEpochStats(Structure):
    """`tslab_epoch_stats` of tslab.h."""

    _fields_ = [
        ("size", c_size_t),
        ("epoch", c_uint64),
        ("parent", c_uint64),
        ("label", c_char_p),
        ("state", c_uint),
        ("threads", c_uint),
        ("scopes", c_uint),
        ("children", c_uint),
        ("live_objects", c_size_t),
        ("live_bytes", c_size_t),
        ("held_bytes", c_size_t),
        ("age_ms", c_uint64),
        ("closed_ms", c_uint64),
        ("late", c_uint64),
        ("place", c_uint64),
        ("peak_bytes", c_size_t),
        ("allocated_objects", c_uint64),
        ("allocated_bytes", c_uint64),
    ]


WRITE = CFUNCTYPE(None, c_void_p, c_size_t, c_void_p)
VISIT = CFUNCTYPE(c_int, c_uint64, c_void_p)

# The C type of an answer, and those of the arguments.
SIGNATURES: dict[str, tuple[object, list[object]]] = {
    "tslab_captures_malloc": (c_bool, []),
    "tslab_epoch_close": (RawSurvivors, [c_uint64]),
    "tslab_epoch_get_stats": (c_int, [c_uint64, POINTER(RawEpochStats)]),
    "tslab_epoch_of": (c_uint64, [c_void_p]),
    "tslab_epoch_open": (c_uint64, [c_char_p, POINTER(RawOptions)]),
    "tslab_epochs_each": (c_int, [VISIT, c_void_p]),
    "tslab_error_text": (c_char_p, [c_int]),
    "tslab_option_get": (c_int, [c_char_p, c_char_p, c_size_t]),
    "tslab_option_set": (c_int, [c_char_p, c_char_p]),
    "tslab_scope_default": (c_int, [POINTER(RawScope)]),
    "tslab_scope_enter": (c_int, [POINTER(RawScope), c_uint64]),
    "tslab_scope_leave": (c_int, [POINTER(RawScope)]),
    "tslab_stats_get": (c_int, [POINTER(RawStats)]),
    "tslab_stats_json": (None, [WRITE, c_void_p]),
    "tslab_trim": (c_int, [c_size_t]),
    "tslab_version": (c_char_p, []),
}


class NotLoadedError(RuntimeError):
    """The process was started without the library."""

    def __init__(self) -> None:
        super().__init__(
            "the process was started without the library: start it with "
            "`python -m tslab run script.py`, or with LD_PRELOAD=libtslab-preload.so"
        )


class TslabError(OSError):
    """What the library refuses. `errno` says why, `strerror` what that means here."""


@cache
def loaded() -> ctypes.CDLL | None:
    """The process's library; None without one."""
    process = ctypes.CDLL(None, use_errno=True)
    if not hasattr(process, "tslab_version"):
        return None
    for name, (result, arguments) in SIGNATURES.items():
        function = getattr(process, name)
        function.restype, function.argtypes = result, arguments
    return process


def call(name: str, *arguments: object) -> object:
    """Calls a C function."""
    library = loaded()
    if library is None:
        raise NotLoadedError
    function: Callable[..., object] = getattr(library, name)
    return function(*arguments)


def check(error: object) -> None:
    """What a function says that returns 0 or an errno value."""
    if error != 0:
        assert isinstance(error, int)
        raise refusal(error)


def refusal(error: int) -> TslabError:
    """The error of an errno value."""
    text = call("tslab_error_text", error)
    assert isinstance(text, bytes)
    return TslabError(error, text.decode())


def refused() -> TslabError:
    """The error of a function that returns a value of its own on failure."""
    return refusal(ctypes.get_errno())
