"""Threads inside one step: parts of its work side by side.

What a step does for some warps it does for others without looking at the first. So the parts of a
step share nothing that is written, and results are the same whatever the number of threads.
The threads are kept from step to step, and are not inherited by a forked process.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

import numpy as np

T = TypeVar("T")


class _Threads:
    """The threads of this process: none until they are asked for."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """In a forked process: its parent's threads are not there."""
        self.count = 0
        self.pool: ThreadPoolExecutor | None = None

    def at_least(self, count: int) -> ThreadPoolExecutor:
        """A pool of that many threads or more."""
        if self.pool is None or self.count < count:
            old, self.count = self.pool, count
            self.pool = ThreadPoolExecutor(count, "fragir")
            if old is not None:
                old.shutdown(wait=False)  # what it has begun it ends
        return self.pool


_threads = _Threads()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_threads.forget)


def side_by_side(jobs: int, parts: Sequence[Callable[[], T]]) -> list[T]:
    """What the parts return, in their order; up to `jobs` of them run at the same time.

    The calling thread does the first one, and others that no thread has begun. All have ended when
    this returns or raises; of several exceptions the first part's is raised. numpy warns of
    nothing in the other threads, as nowhere in the emulator.
    """
    if jobs < 2 or len(parts) < 2:
        return [part() for part in parts]
    pool = _threads.at_least(jobs - 1)
    begun = [pool.submit(_quietly, part) for part in parts[1:]]
    try:
        results = [parts[0]()]
        for future, part in zip(begun, parts[1:], strict=True):
            results.append(part() if future.cancel() else future.result())
    finally:
        _end(begun)
    return results


def pieces(count: int, jobs: int, least: int) -> list[slice]:
    """Up to `jobs` ranges of about one size that make up 0..count; none has less than `least`."""
    number = max(min(jobs, count // max(least, 1)), 1)
    cuts = [count * k // number for k in range(number + 1)]
    return [slice(cuts[k], cuts[k + 1]) for k in range(number)]


def _quietly(part: Callable[[], T]) -> T:
    with np.errstate(all="ignore"):  # is one thread's own
        return part()


def _end(begun: Sequence[Future[T]]) -> None:
    """Waits for parts whose results nobody wants any more."""
    for future in begun:
        if not future.cancel():
            future.exception()
