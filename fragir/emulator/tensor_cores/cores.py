"""Which core computes an mma or wgmma: the compiled one, or None for numpy's `execute`."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from fragir.emulator.native.library import library
from fragir.emulator.numbers.types import I64, U8, U32
from fragir.emulator.tensor_cores.compiled import CompiledMma, CompiledWgmma, FileRows, Source
from fragir.emulator.tensor_cores.mma import Mma
from fragir.emulator.tensor_cores.wgmma import Wgmma


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
    if found is None:
        return None
    return CompiledMma(found, op, instructions, d, a, b, c, **options)


def wgmma_core(op: Wgmma, d: FileRows, a: FileRows | None, **options: Any) -> WgmmaCore | None:
    """What computes a wgmma; None: numpy does."""
    found = library()
    return None if found is None else CompiledWgmma(found, op, d, a, **options)
