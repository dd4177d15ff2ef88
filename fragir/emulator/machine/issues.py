"""One wgmma on its way: what is constant in the text, and what was given at its issue."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from fragir.emulator.tensor_cores import Wgmma
from fragir.ptx import tree

WARPGROUP = 4


@dataclass(frozen=True, slots=True)
class WgmmaStatement:
    """What is constant in one wgmma of the text."""

    op: Wgmma
    d: npt.NDArray[np.intp]  # rows of the 32-bit register file
    a: npt.NDArray[np.intp] | None  # None: A is in shared memory
    options: dict[str, Any]
    place: tuple[str | None, int | None, int | None]  # file, line, column in the PTX
    instruction: tree.Instruction
    names: dict[int, str]  # row -> the register's name in the text

    def name(self, row: int) -> str:
        return self.names.get(row, "a register")


@dataclass(frozen=True, slots=True)
class Issue:
    """One wgmma of some warpgroups, not executed yet. Arrays run along the warpgroups."""

    form: WgmmaStatement
    warps: npt.NDArray[np.intp]  # the first warp of each warpgroup
    groups: npt.NDArray[np.int64]  # number of the commit group it belongs to
    a: npt.NDArray[np.uint64] | None
    b: npt.NDArray[np.uint64]
    scale: npt.NDArray[np.bool_]
    meta: npt.NDArray[np.uint32] | None

    def part(self, which: npt.NDArray[np.bool_]) -> Issue:
        return replace(
            self,
            warps=self.warps[which],
            groups=self.groups[which],
            a=None if self.a is None else self.a[which],
            b=self.b[which],
            scale=self.scale[which],
            meta=None if self.meta is None else self.meta[:, which],
        )


def expand(first: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    """All warps of the warpgroups that begin at `first`."""
    return (first[:, None] + np.arange(WARPGROUP)).ravel()
