"""From the words of a mnemonic to an operation."""

from __future__ import annotations

from functools import lru_cache

from fragir.emulator.tensor_cores.arithmetic import target as read_target
from fragir.emulator.tensor_cores.matrix import build_matrix
from fragir.emulator.tensor_cores.mma_forms import build_mma
from fragir.emulator.tensor_cores.mnemonic import read_words
from fragir.emulator.tensor_cores.types import Settings, TensorOp
from fragir.emulator.tensor_cores.wgmma import build_wgmma
from fragir.emulator.tensor_cores.wmma import build_wmma, build_wmma_access
from fragir.errors import FragirError


def tensor_instruction(
    opcode: tuple[str, ...], target: str, settings: Settings | None = None
) -> TensorOp:
    """The operation named by the dotted words `opcode`, for `.target target`.

    For example `("mma", "sync", "aligned", "m16n8k16", "row", "col", "f32", "f16", "f16", "f32")`;
    words are as PTX writes them, `kind::f8f6f4` and `sp::ordered_metadata` being one word each, in
    any order that ptxas takes. A state space word of ldmatrix and stmatrix (`shared`,
    `shared::cta`) may stand among them. Raises FragirError where the form is unknown or the target
    does not have it. Cached.
    """
    return _build(opcode, target, settings or Settings())


@lru_cache(maxsize=4096)
def _build(opcode: tuple[str, ...], target: str, settings: Settings) -> TensorOp:
    where = read_target(target)
    match opcode[0]:
        case "mma":
            return build_mma(read_words(opcode), where, settings)
        case "wgmma" if "mma_async" in opcode:
            return build_wgmma(read_words(opcode), where)
        case "wmma" if opcode[1:2] == ("mma",):
            return build_wmma(opcode, where)
        case "wmma" if opcode[1:2] in (("load",), ("store",)):
            return build_wmma_access(opcode, where)
        case "ldmatrix" | "stmatrix" | "movmatrix":
            return build_matrix(opcode, where)
        case _:
            raise FragirError(f"`{'.'.join(opcode)}` is no tensor-core instruction of the emulator")
