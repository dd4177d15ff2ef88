"""Signals that end the process, as exceptions: children are ended, temporary files deleted."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Generator
from types import FrameType
from typing import NoReturn

_ENDING = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]


class Ended(BaseException):
    """A signal asked the process to end. Derives from BaseException as KeyboardInterrupt does."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number

    @property
    def code(self) -> int:
        """The exit code that shells give to a process that a signal has ended."""
        return 128 + self.number


@contextlib.contextmanager
def raised() -> Generator[None]:
    """SIGTERM and SIGHUP raise Ended in here, once: a second one ends the process at once.

    A signal that is ignored (`nohup`) or that somebody else handles stays as it is.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    taken = [s for s in _ENDING if signal.getsignal(s) is signal.SIG_DFL]

    def end(number: int, _frame: FrameType | None) -> NoReturn:
        for each in taken:
            signal.signal(each, signal.SIG_DFL)
        raise Ended(number)

    for each in taken:
        signal.signal(each, end)
    try:
        yield
    finally:
        for each in taken:
            signal.signal(each, signal.SIG_DFL)
