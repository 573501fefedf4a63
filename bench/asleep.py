"""Runs that sleep, side by side: they count bytes, which others asleep do not change."""

import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor, as_completed
from pathlib import Path
from threading import Event, Lock
from typing import Generic, TypeVar

from measure import Run, end_children
from work import Work

# A burst before the sleep takes a processor for up to half a second. Begun that far apart, runs do
# not keep each other from the processors in the second after, when memory goes back. 40 have begun
# after a third of the minute that they sleep, and hold less than 10 GiB, of 240 MiB each.
APART_S = 0.5
MOST_AT_ONCE = 40

T = TypeVar("T")
Settle = Callable[[T, Callable[[], Run]], None]


def available_mib() -> int:
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) // 1024
    return 0


def how_many_at_once(works: Iterable[Work]) -> int:
    """They hold at most half of what is free: a page swapped out would count as returned."""
    largest_mib = max((work.asleep_mib for work in works), default=1)
    return max(1, min(MOST_AT_ONCE, available_mib() // 2 // largest_mib))


class Batch(Generic[T]):
    """Steps that run side by side, as many at once as may, in threads that only wait."""

    def __init__(self, steps: Sequence[T], run_step: Callable[[T], Run], at_once: int) -> None:
        self.steps, self.run_step, self.at_once = steps, run_step, at_once
        self.turn, self.stopped = Lock(), Event()
        self.begun = 0
        self.last_begun_s = 0.0
        self.longest_s = 0.0

    def run(self, settle: Settle[T]) -> None:
        """Settles each step as it ends, in the thread that calls. An interruption ends the programs
        that run; what had ended before it is settled all the same."""
        with ThreadPoolExecutor(self.at_once) as pool:
            waiting: dict[Future[Run], T] = {}
            try:
                for step in self.steps:
                    waiting[pool.submit(self.run_in_turn, step)] = step
                for future in as_completed(waiting):
                    settle(waiting.pop(future), future.result)
            except BaseException:
                self.stop(waiting)
                for future, step in waiting.items():
                    if future.exception() is None:
                        settle(step, future.result)
                raise

    def run_in_turn(self, step: T) -> Run:
        with self.turn:
            if self.stopped.wait(APART_S):
                raise CancelledError
            self.begun += 1
            begun_s = self.last_begun_s = time.monotonic()
        run = self.run_step(step)
        self.longest_s = max(self.longest_s, time.monotonic() - begun_s)
        return run

    def stop(self, futures: Iterable[Future[Run]]) -> None:
        """A thread may have been about to start its program: hence again until all are done."""
        self.stopped.set()
        while not all(future.done() for future in futures):
            end_children()
            time.sleep(0.02)

    def left_s(self) -> float | None:
        """Unknown until a run has shown how long one takes."""
        if self.longest_s == 0:
            return None
        rounds = (len(self.steps) - self.begun) / self.at_once
        running_s = self.last_begun_s + self.longest_s - time.monotonic()
        return rounds * self.longest_s + max(0.0, running_s)
