"""Tensor-core instructions as functions on register arrays: what the machine calls.

`tensor_instruction(opcode, target)` turns the dotted words of a PTX mnemonic into one of

* `MmaOp`        mma.sync, mma.sp, mma.sp::ordered_metadata    registers -> registers
* `WgmmaOp`      wgmma.mma_async and its sparse form    registers, shared memory -> registers
* `LdmatrixOp`   ldmatrix                                       rows of 16 bytes -> registers
* `StmatrixOp`   stmatrix                                       registers -> rows of 16 bytes
* `WmmaOp`       wmma.mma (an `MmaOp`)                          registers -> registers
* `WmmaAccess`   wmma.load, wmma.store                          places of a matrix in memory
* `MovmatrixOp`  movmatrix                                      registers -> registers

A register operand of `n` registers is one array `[n, W, 32]`: register, warp, lane (wgmma:
`[n, G, 4, 32]`: register, warpgroup, warp, lane), `uint32`, or `uint64` where the registers are
64 bits wide. Everything is batched over W (or G): the same instruction of many warps, or
independent neighbouring instructions of one warp, are one call. Results are new arrays and never
alias an argument. Operations are immutable, cached, and safe to keep; they hold scratch memory
that is not safe to use from two threads at once.

Nothing here touches memory or knows the machine. What is legal on which target is checked when the
operation is made; operand counts are given by the operation's `Registers`, so that the machine can
check them against the statement. The arithmetic is described in docs/arithmetic.md.
"""

from __future__ import annotations

from fragir.emulator.tensor_cores.matrix import LdmatrixOp, MovmatrixOp, StmatrixOp
from fragir.emulator.tensor_cores.mma import MmaOp
from fragir.emulator.tensor_cores.opcode import tensor_instruction
from fragir.emulator.tensor_cores.types import Registers, Settings, TensorOp
from fragir.emulator.tensor_cores.wgmma import ReadShared, WgmmaOp
from fragir.emulator.tensor_cores.wmma import WmmaAccess, WmmaOp

__all__ = [
    "LdmatrixOp",
    "MmaOp",
    "MovmatrixOp",
    "ReadShared",
    "Registers",
    "Settings",
    "StmatrixOp",
    "TensorOp",
    "WgmmaOp",
    "WmmaAccess",
    "WmmaOp",
    "tensor_instruction",
]
