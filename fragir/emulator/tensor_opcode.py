"""From the words of a mnemonic to an operation."""

from __future__ import annotations

from fragir.emulator.tensor_types import Settings, TensorOp


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
    raise NotImplementedError
