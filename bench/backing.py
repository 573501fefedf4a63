"""Memory that the host of a virtual machine has behind it. Pages that nobody used for some seconds
are told to the host, which takes them; who touches them next waits for the host to find others. A
GiB takes 2 s then, and 0.1 s otherwise (`shape_large` ran at 250 or 1,400 blocks a second)."""

from mmap import MADV_HUGEPAGE, mmap

MIB = 1 << 20


def back(mib: int) -> None:
    """Touches so much, and gives it back to the system, which hands it out next."""
    with mmap(-1, mib * MIB) as memory:
        memory.madvise(MADV_HUGEPAGE)
        for _ in range(mib):
            memory.write(b"\1" * MIB)
