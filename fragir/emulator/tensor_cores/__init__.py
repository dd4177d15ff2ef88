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

from functools import lru_cache

from fragir.emulator.tensor_cores.arithmetic import target as read_target
from fragir.emulator.tensor_cores.forms import OperandRegisters, Settings, TensorOp, read_words
from fragir.emulator.tensor_cores.matrix import Ldmatrix, Movmatrix, Stmatrix, build_matrix
from fragir.emulator.tensor_cores.mma import Mma, build_mma
from fragir.emulator.tensor_cores.wgmma import ReadShared, Wgmma, build_wgmma
from fragir.emulator.tensor_cores.wmma import Wmma, WmmaAccess, build_wmma, build_wmma_access
from fragir.errors import FragirError
from fragir.ptx.opcodes.table import OPCODES


def tensor_instruction(
    opcode: tuple[str, ...], target: str, settings: Settings | None = None
) -> TensorOp:
    """The operation named by the dotted words `opcode`, for `.target target`.

    For example `("mma", "sync", "aligned", "m16n8k16", "row", "col", "f32", "f16", "f16", "f32")`;
    words are as PTX writes them, `kind::f8f6f4` and `sp::ordered_metadata` being one word each, in
    any order that ptxas takes; which there are the rows say (`fragir/ptx/opcodes/matrices.py`).
    Raises FragirError where the form is unknown or the target does not have it. Cached.
    """
    return _build(opcode, target, settings or Settings())


@lru_cache(maxsize=4096)
def _build(opcode: tuple[str, ...], target: str, settings: Settings) -> TensorOp:
    where = read_target(target)
    found = OPCODES.find(opcode)
    if found.opcode is None:
        raise FragirError(found.problem, hint=found.hint)
    opcode = found.words
    match found.opcode.head:
        case ("mma",):
            return build_mma(read_words(opcode), where, settings)
        case "wgmma", "mma_async":
            return build_wgmma(read_words(opcode), where)
        case "wmma", "mma":
            return build_wmma(opcode, where)
        case "wmma", _, _:
            return build_wmma_access(opcode, where)
        case ("ldmatrix" | "stmatrix" | "movmatrix",):
            return build_matrix(opcode, where)
        case _:
            raise FragirError(f"`{'.'.join(opcode)}` is no tensor-core instruction of the emulator")


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
