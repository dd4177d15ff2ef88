"""Time limits on a call, in whatever thread it runs."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


class OverTime(BaseException):
    """A call took longer than it may. No Exception, so that no handler of those stops it."""


def limited(seconds: float, call: Callable[[], T]) -> T:
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
