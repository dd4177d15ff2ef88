"""Which core runs the emulator's steps, the compiled library or numpy, and on how many threads."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal, TypeAlias, TypeVar

import numpy as np

from fragir.errors import FragirError, check_one_of

CoreName: TypeAlias = Literal["compiled", "numpy"]

VARIABLE = "FRAGIR_CORE"
CHOICES: tuple[CoreName, ...] = ("compiled", "numpy")
"""What FRAGIR_CORE may say; the first that is there is used without it."""

VERSION = 8
"""FRAGIR_CORE_VERSION of source/core.h: what this package calls."""

LEVELS = ("baseline", "AVX2", "AVX-512")
"""What `fragir_core_level()` counts."""

_SUFFIX = {"win32": ".dll", "darwin": ".dylib"}.get(sys.platform, ".so")
PATH = Path(__file__).parent / f"core.shared{_SUFFIX}"
"""Where setup.py puts the library."""


@dataclass(frozen=True)
class CompiledLibrary:
    """The library, called in two ways; or, without either, why it cannot be."""

    unlocked: ctypes.CDLL | None = None
    locked: ctypes.PyDLL | None = None
    reason: str | None = None


def core() -> CoreName:
    """The core in use.

    FragirError where FRAGIR_CORE names one that is not there, or none at all.
    """
    asked = os.environ.get(VARIABLE)
    if asked:
        check_one_of(asked, CHOICES, VARIABLE)
    problem = reason()
    if asked == "compiled" and problem is not None:
        hint = f"unset {VARIABLE}, and the best that is there is used"
        raise FragirError(f"{VARIABLE} asks for compiled: {problem}", hint=hint)
    return "numpy" if asked == "numpy" or problem is not None else "compiled"


def library() -> ctypes.CDLL | None:
    """The compiled library, called without the interpreter's lock; None where it is not in use."""
    return compiled_library().unlocked if core() == "compiled" else None


def quick() -> ctypes.PyDLL | None:
    """The same, called with the lock held: for calls of microseconds."""
    return compiled_library().locked if core() == "compiled" else None


def level() -> str | None:
    """The instructions of the CPU that the compiled core uses; None where it is not in use."""
    found = library()
    if found is None:
        return None
    number: int = found.fragir_core_level()
    return LEVELS[number]


def reason() -> str | None:
    """Why the compiled core cannot be used, in a clause; None where it can."""
    return compiled_library().reason


def why_not_faster() -> str | None:
    """Why the compiled core is not in use, with a way out; None where it is."""
    if core() == "compiled":
        return None
    if os.environ.get(VARIABLE):
        return f"{VARIABLE} asks for it"
    way = "fragir installed again where there is gcc or clang (in a clone: make core)"
    return f"the compiled core: {reason()}; faster would be {way}"


@cache
def compiled_library() -> CompiledLibrary:
    """The library beside this file, loaded once in a process."""
    return load(PATH)


def load(path: Path) -> CompiledLibrary:
    """A library of this package's version, or why that file is none."""
    if not path.is_file():
        return CompiledLibrary(reason="it was not built")
    try:
        unlocked, locked = ctypes.CDLL(str(path)), ctypes.PyDLL(str(path))
        version = unlocked.fragir_core_version()
    except (OSError, AttributeError) as error:
        return CompiledLibrary(reason=f"{path.name} cannot be loaded: {error}")
    if version != VERSION:
        return CompiledLibrary(reason=f"{path.name} is of version {version}, not {VERSION}")
    return CompiledLibrary(unlocked, locked)


# -- threads ---------------------------------------------------------------------------------------
# Threads inside one step: parts of its work side by side.
#
# What a step does for some warps it does for others without looking at the first. So the parts of a
# step share nothing that is written, and results are the same whatever the number of threads. The
# threads are kept from step to step, and are not inherited by a forked process.

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
