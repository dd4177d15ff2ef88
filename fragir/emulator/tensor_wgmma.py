"""wgmma.mma_async: the arithmetic of one warpgroup, operands from registers or shared memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from fragir.emulator.tensor_types import U8, U32, U64, Registers, TensorOp

# (addresses: u32[G, X], each a multiple of 16, an offset in the block's shared window)
#   -> u8[G, X, 16]: the 16 bytes at each of them, row g read from the block of warpgroup g.
ReadShared: TypeAlias = Callable[[U32], U8]


@dataclass(frozen=True, slots=True)
class WgmmaOp(TensorOp):
    """`wgmma.mma_async[.sp]... d, a, b-desc[, e, f], scale-d[, scale-a, scale-b[, trans...]]`
    (PTX ISA 9.7.15.5.2 and 9.7.15.6.3).

    `d`: accumulator registers. `a`: its registers when A comes from registers (always 4; the
    statement decides). `e`, `selectors`: as in `MmaOp`. `scales_inputs`: imm-scale-a and -b are
    in the statement. `transposes`: imm-trans-b (and, with A in shared memory, imm-trans-a) are.
    """

    d: Registers
    a: Registers
    e: Registers | None = None
    selectors: tuple[int, ...] = ()
    scales_inputs: bool = False
    transposes: bool = False

    def shared_addresses(
        self, a: U64 | None, b: U64, *, transpose_a: bool = False, transpose_b: bool = False
    ) -> U32:
        """Where the operands lie: `u32[G, X]`, starts of 16-byte chunks in the shared window.

        Exactly the bytes that `execute` with the same descriptors will read (A, if `a` is a
        descriptor, then B), so that the machine can lock them from issue to retirement.
        """
        raise NotImplementedError

    def execute(
        self,
        d: U32,
        a: U32 | U64,
        b: U64,
        read_shared: ReadShared,
        *,
        scale_d: bool | npt.NDArray[np.bool_] = True,
        scale_a: int = 1,
        scale_b: int = 1,
        transpose_a: bool = False,
        transpose_b: bool = False,
        e: U32 | None = None,
        selector: int = 0,
    ) -> U32:
        """D = A*B (+ D where `scale_d`) for G warpgroups: `u32[d.count, G, 4, 32]`, a new array.

        `a`: registers `u32[4, G, 4, 32]`, or descriptors `u64[G]`; `b`: descriptors `u64[G]`.
        `scale_d`: one truth value or one per warpgroup `bool[G]`. `scale_a`, `scale_b`: 1 or -1.
        `transpose_*`: the immediates imm-trans (true: MN-major). `e`: `u32[1, G, 4, 32]`.
        The operands are read through `read_shared` here, so call it when the instruction retires.
        """
        raise NotImplementedError
