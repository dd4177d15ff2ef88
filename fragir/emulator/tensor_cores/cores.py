"""Which core computes an mma or wgmma: the compiled one, numba's, or None for numpy's `execute`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from fragir.emulator.native import numba_choice
from fragir.emulator.native.library import library
from fragir.emulator.numbers.types import I64, U8, U32
from fragir.emulator.tensor_cores.compiled import CompiledMma, CompiledWgmma, FileRows, Source
from fragir.emulator.tensor_cores.mma import Mma
from fragir.emulator.tensor_cores.numba_core import NumbaMma, NumbaWgmma, covers
from fragir.emulator.tensor_cores.wgmma import Wgmma
from fragir.errors import FragirError, pass_on

T = TypeVar("T")


class MmaCore(Protocol):
    """Some neighbouring independent mma for the selected warps: see `CompiledMma`."""

    def __call__(
        self,
        warps: slice | npt.NDArray[np.intp],
        jobs: int = 1,
        arrays: dict[str, npt.NDArray[Any]] | None = None,
        **words: U32,
    ) -> None: ...


class WgmmaCore(Protocol):
    """One wgmma for some warpgroups: see `CompiledWgmma`."""

    def __call__(
        self,
        warps: npt.NDArray[np.intp],
        shared: U8,
        home: I64,
        a: U32 | None,
        b: U32,
        scale_d: npt.NDArray[np.bool_],
        e: U32 | None = None,
        jobs: int = 1,
    ) -> None: ...


def mma_core(
    op: Mma, instructions: int, d: Source, a: Source, b: Source, c: Source, **options: Any
) -> MmaCore | None:
    """What computes `instructions` neighbouring mma; None: numpy does."""
    found = library()
    if found is not None:
        return CompiledMma(found, op, instructions, d, a, b, c, **options)
    return _by_numba(op, partial(NumbaMma, op, instructions, d, a, b, c, **options))


def wgmma_core(op: Wgmma, d: FileRows, a: FileRows | None, **options: Any) -> WgmmaCore | None:
    """What computes a wgmma; None: numpy does."""
    found = library()
    if found is not None:
        return CompiledWgmma(found, op, d, a, **options)
    return _by_numba(op, partial(NumbaWgmma, op, d, a, **options))


def _by_numba(op: Mma | Wgmma, make: Callable[[], T]) -> T | None:
    if not covers(op) or not numba_choice.ready():
        return None
    try:
        return make()
    except (FragirError, AssertionError):  # of the instruction
        raise
    except Exception as problem:  # numba's own, of whatever kind
        pass_on(problem)
        numba_choice.give_up(problem)
        return None


def decided(op: Mma | Wgmma) -> bool:
    """Whether numpy goes on to compute what `mma_core` or `wgmma_core` left to it."""
    return not covers(op) or not numba_choice.undecided()


def computed(op: Mma | Wgmma, count: int) -> None:
    """numpy has computed `count` of an instruction; at some number numba pays."""
    plan = op.plan
    numba_choice.count(count * plan.d.word.size * plan.a.extents[0])
