"""What a caller's signal handler raises is the caller's, wherever it interrupts fragir."""

from __future__ import annotations

import signal
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import fragir
from fragir.errors import FragirError, pass_on

TEXT = """
func.func @k(%x: memref<32x64xf32>) {
  %t = frag.load %x[0, 0] : memref<32x64xf32> -> !frag.tile<32x64xf32>
  %s = frag.reduce add dim 1 %t : !frag.tile<32x64xf32> -> !frag.tile<32xf32>
  frag.store %s, %x[0, 0] : !frag.tile<32xf32>, memref<32x64xf32>
  func.return
}"""


class LateError(Exception):
    """What a handler raises."""


class Handler:
    def method(self, *given: object) -> None:
        raise LateError


def function(_number: int, frame: object) -> None:
    raise LateError(frame)


@contextmanager
def after(seconds: float, handler: Callable[..., Any]) -> Generator[None]:
    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


# A handler may come within some `__del__`, of other tests' objects too: Python drops its error.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("handler", [function, Handler().method])
def test_it_comes_out_as_it_was_raised(handler: Callable[..., Any]) -> None:
    built = fragir.compile(TEXT, target="sm_80")
    x = np.zeros((32, 64), np.float32)
    late = 0
    for step in range(16):
        for work in (
            lambda: fragir.compile(TEXT, target="sm_90a"),
            lambda: built.launch((1,), None, x, on="emulator", check=True),
        ):
            try:
                with after(1e-4 + 1.5e-3 * step, handler):
                    work()
            except LateError:
                late += 1
    assert late >= 8


def test_what_a_stream_raises_is_told_as_it_is() -> None:
    class Full:
        def write(self, text: str) -> None:
            raise LateError(text)

    with fragir.kernel("talks", warps=(1, 1)) as k:
        k.print("hello")
    with pytest.raises(LateError, match="hello"):
        k.compile("sm_80")(on="emulator", output=Full())


def test_other_errors_stay_where_they_are() -> None:
    for error in (ValueError("x"), FragirError("y")):
        try:
            raise error
        except Exception as caught:
            pass_on(caught)
    error = KeyError("what xDSL's verifiers make of an exception")
    try:
        with after(1e-3, function):
            while True:
                pass
    except LateError as caught:
        error.__cause__ = caught
    with pytest.raises(LateError):
        pass_on(error)
