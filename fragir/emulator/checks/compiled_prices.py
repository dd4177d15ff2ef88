"""Bank conflicts and sectors counted by the compiled core (`native/source/planes.c`)."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import numpy as np

from fragir.emulator.machine.lanes import LANES
from fragir.emulator.native import library
from fragir.emulator.numbers.types import I64

_POINTER, _NUMBER = ctypes.c_void_p, ctypes.c_int64


class CompiledPrices:
    """`function`: fragir_prices of the library."""

    def __init__(self, function: Any) -> None:
        function.argtypes = [_POINTER, _POINTER, *3 * [_NUMBER], ctypes.c_int, _POINTER]
        function.restype = ctypes.c_int
        self._function = function
        self._found = np.zeros(4, np.int64)
        self._out = self._found.__array_interface__["data"][0]

    def total(
        self, at: I64, lanes: I64, size: int, shared: bool
    ) -> tuple[int, int, int, int] | None:
        """(paid, needed, the most that a warp pays more than it must, that warp); None where lanes
        do not ascend."""
        at = np.ascontiguousarray(at)
        where: int = at.__array_interface__["data"][0]
        whole = lanes.ndim == 2 and lanes.shape[1] == LANES and lanes.shape == at.shape
        first = int(lanes[0, 0]) if whole else 0
        if whole and int(lanes[-1, -1]) - first + 1 == lanes.size:  # neighbours
            done = self._function(where, None, first, at.size, size, int(shared), self._out)
        else:
            lanes = np.ascontiguousarray(lanes)
            them: int = lanes.__array_interface__["data"][0]
            done = self._function(where, them, 0, at.size, size, int(shared), self._out)
        if not done:
            return None
        paid, needed, excess, warp = self._found.tolist()
        return paid, needed, excess, warp


@cache
def _prices(quick: ctypes.PyDLL) -> CompiledPrices:
    return CompiledPrices(quick.fragir_prices)


def compiled_prices() -> CompiledPrices | None:
    """What the compiled core has; None where it is not in use."""
    quick = library.quick()
    return None if quick is None else _prices(quick)
