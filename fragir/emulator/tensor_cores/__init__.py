"""Tensor-core instructions as functions on register arrays: what the machine calls.

`tensor_instruction(opcode, target)` turns the dotted words of a PTX mnemonic into one of

* `Mma`         mma.sync, mma.sp, mma.sp::ordered_metadata     registers -> registers
* `Wgmma`       wgmma.mma_async and its sparse form    registers, shared memory -> registers
* `Ldmatrix`    ldmatrix                                       rows of 16 bytes -> registers
* `Stmatrix`    stmatrix                                       registers -> rows of 16 bytes
* `Wmma`        wmma.mma (an `Mma`)                            registers -> registers
* `WmmaAccess`  wmma.load, wmma.store                          places of a matrix in memory
* `Movmatrix`   movmatrix                                      registers -> registers

A register operand of `n` registers is one array `[n, W, 32]`: register, warp, lane (wgmma:
`[n, G, 4, 32]`: register, warpgroup, warp, lane), `uint32`, or `uint64` where the registers are
64 bits wide. Everything is batched over W (or G): the same instruction of many warps, or
independent neighbouring instructions of one warp, are one call. Results are new arrays and never
alias an argument. Operations are immutable, cached, safe to keep and to use from several threads:
each thread has its own scratch memory.

Nothing here touches memory or knows the machine. What is legal on which target is checked when the
operation is made; operand counts are given by the operation's `OperandRegisters`, so that the
machine can check them against the statement. The arithmetic is described in docs/arithmetic.md.
"""

from __future__ import annotations

from fragir.emulator.tensor_cores.matrix import Ldmatrix, Movmatrix, Stmatrix
from fragir.emulator.tensor_cores.mma import Mma
from fragir.emulator.tensor_cores.opcode import tensor_instruction
from fragir.emulator.tensor_cores.types import OperandRegisters, Settings, TensorOp
from fragir.emulator.tensor_cores.wgmma import ReadShared, Wgmma
from fragir.emulator.tensor_cores.wmma import Wmma, WmmaAccess

__all__ = [
    "Ldmatrix",
    "Mma",
    "Movmatrix",
    "OperandRegisters",
    "ReadShared",
    "Settings",
    "Stmatrix",
    "TensorOp",
    "Wgmma",
    "Wmma",
    "WmmaAccess",
    "tensor_instruction",
]
