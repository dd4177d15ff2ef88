"""Control flow, and what nobody emulates yet (PTX ISA 9.2, section 9.7.12)."""

from __future__ import annotations

from fragir.ptx.opcodes.row import Opcode

#: The opcode of the pseudo instruction behind a call, where its results arrive.
RESULTS = "results of call"

# -- control --------------------------------------------------------------------------------------

_CONTROL: tuple[Opcode, ...] = (
    Opcode("bra", "{.uni} label", ends="branch"),
    Opcode("brx.idx", "{.uni} a, labels", ends="branch"),
    Opcode("call", "{.uni} ...", ends="call"),
    Opcode(RESULTS, "... ...", bits="results", address="number"),
    Opcode("ret", "{.uni}", ends="return"),
    Opcode("exit", ends="exit"),
    *(Opcode(name, ends="trap") for name in ("trap", "brkpt")),
)

# -- missing --------------------------------------------------------------------------------------

_WHY = {
    "memory of several GPUs": "multimem",
    "textures and surfaces": "tex tld4 txq istypep suld sust sured suq",
    "tensor memory": "tcgen05",
    "carry-less products": "clmad",
}
_MISSING: tuple[Opcode, ...] = tuple(
    Opcode(name, "... ...", missing=why) for why, names in _WHY.items() for name in names.split()
)

OPCODES: tuple[Opcode, ...] = (
    *_CONTROL,
    *_MISSING,
)
