"""A call that must end well or with a user's error, soon, and without much memory."""

from __future__ import annotations

import ctypes
import re
import threading
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from fragir.errors import FragirError
from fragir.sweeps.definition import GIB
from fragir.sweeps.faults import error_text, fault

# -- limits ----------------------------------------------------------------------------------------
# Time limits on a call, in whatever thread it runs.

T = TypeVar("T")


class OverTime(BaseException):
    """A call took longer than it may. No Exception, so that no handler of those stops it."""


def call_limited(seconds: float, call: Callable[[], T]) -> T:
    """What `call` returns; OverTime is raised inside it when it takes longer.

    The exception arrives between two steps of the interpreter: one long call of a C function, as
    of a regular expression, ends first.
    """
    thread = threading.get_ident()
    lock = threading.Lock()
    over = False

    def interrupt() -> None:
        with lock:
            if not over:
                _raise_in(thread, OverTime)

    timer = threading.Timer(seconds, interrupt)
    timer.daemon = True
    try:
        timer.start()
        try:
            return call()
        finally:
            with lock:
                over = True
            timer.cancel()
    except OverTime:
        raise OverTime(f"over the time limit of {seconds:g} s") from None


def _raise_in(thread: int, kind: type[BaseException]) -> None:
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(kind))


#: What fuzzers allow one input: seconds of CPU time, bytes.
SECONDS, MEMORY = 5.0, GIB
#: Wall time for each second of CPU time: other processes run too.
_PATIENCE = 4


@dataclass(frozen=True)
class Attempt(Generic[T]):
    """What a call did: returned `value`, refused by `error`, or is to blame for `finding`."""

    value: T | None = None
    error: FragirError | None = None
    finding: str | None = None


def attempt(call: Callable[[], T], *, seconds: float = SECONDS, memory: int = MEMORY) -> Attempt[T]:
    """Makes a call and judges it. A warning, which users would see, is a finding too."""
    before = _peak()
    start = time.process_time()
    made: Attempt[T]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            made = Attempt(call_limited(_PATIENCE * seconds, call))
    except OverTime:
        return Attempt(finding=f"ran for more than {_PATIENCE * seconds:g} s")
    except FragirError as error:
        made = Attempt(error=error, finding=fault(error))
    except (Exception, SystemExit) as error:
        made = Attempt(finding=error_text(error))
    spent, grown = time.process_time() - start, _peak(again=True) - before
    if made.finding is None and spent > seconds:
        return Attempt(finding=f"took {spent:.1f} s of CPU time")
    if made.finding is None and grown > memory:
        return Attempt(finding=f"took {grown / GIB:.1f} GiB of memory")
    return made


def _peak(*, again: bool = False) -> int:
    """Bytes that this process holds; `again`: the most that it has held since the last question.

    0 where the system does not say.
    """
    try:
        if not again:
            Path("/proc/self/clear_refs").write_text("5")
        found = re.search(r"VmHWM:\s*(\d+) kB", Path("/proc/self/status").read_text())
    except OSError:
        return 0
    return int(found[1]) << 10 if found else 0
