"""Opcodes that ptxas takes and nobody emulates yet, and why."""

from __future__ import annotations

from fragir.emulator.program.opcode import Opcode

_MISSING = {
    "memory of several GPUs": "multimem",
    "textures and surfaces": "tex tld4 txq istypep suld sust sured suq",
    "tensor memory": "tcgen05",
    "carry-less products": "clmad",
}

OPCODES: tuple[Opcode, ...] = tuple(
    Opcode(name, "... ...", missing=why)
    for why, names in _MISSING.items()
    for name in names.split()
)
