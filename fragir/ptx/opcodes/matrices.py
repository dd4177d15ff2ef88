"""Instructions of tensor cores (PTX ISA 9.2, sections 9.7.14 to 9.7.16)."""

from __future__ import annotations

from typing import Any

from fragir.ptx.opcodes.row import Moves, Opcode, is_always, needs, rule_apart

# -- products -------------------------------------------------------------------------------------

_FLAGS = (
    needs("xor and", "popc"),
    needs("popc", "b1"),
    needs("rn rz rm rp", "f64"),
    needs("scale_vec::1X scale_vec::2X scale_vec::4X", "block_scale"),
)
_MATRIX: dict[str, Any] = {
    "bits": "matrix",
    "address": "number",
    "apart": True,
    "together": "warp",
    "rules": _FLAGS,
}
#: The words of mma and wmma are read where the operation is built (`tensor_cores/forms.py`).
_PRODUCTS: tuple[Opcode, ...] = (
    Opcode("mma", "... d, ...", step="mma", fuses=True, **_MATRIX),
    Opcode("wmma.mma", "... d, a, b, c", step="mma", **_MATRIX),
)

# -- warp matrix ----------------------------------------------------------------------------------

_WARP: dict[str, Any] = {"together": "warp"}
_ACCESSES = (
    rule_apart("load store", "xor and popc rn rz rm rp satfinite block_scale trans sp"),
    rule_apart("global", "shared shared::cta"),
    rule_apart("shared", "shared::cta"),
)
_WARP_MATRIX: tuple[Opcode, ...] = (
    Opcode(
        "wmma.load",
        "... d, [a]{, stride}",
        step="wmma",
        rules=_ACCESSES,
        bits="load fragment",
        access="load",
        address="number",
        apart=True,
        **_WARP,
    ),
    Opcode(
        "wmma.store",
        "... [a], b{, stride}",
        step="wmma",
        rules=_ACCESSES,
        bits="store fragment",
        access="store",
        **_WARP,
    ),
    Opcode(
        "ldmatrix",
        """
        .sync.aligned.m8n8.x1|x2|x4{.trans}{.OWN}.b16 d, [a]
        .sync.aligned.m16n16.x1|x2.trans{.OWN}.b8 d, [a]
        .sync.aligned.m16n16.x1|x2.trans{.OWN}.b8x16.b6x16_p32|b4x16_p64 d, [a]
        .sync.aligned.m8n16.x1|x2|x4{.OWN}.b8x16.b6x16_p32|b4x16_p64 d, [a]
        """,
        step="load matrices",
        bits="load",
        access="load",
        address="number",
        apart=True,
        **_WARP,
    ),
    Opcode(
        "stmatrix",
        """
        .sync.aligned.m8n8.x1|x2|x4{.trans}{.OWN}.b16 [a], b
        .sync.aligned.m16n8.x1|x2|x4.trans{.OWN}.b8 [a], b
        """,
        step="store matrices",
        bits="store",
        access="store",
        **_WARP,
    ),
    Opcode(
        "movmatrix",
        ".sync.aligned.m8n8.trans.b16 d:b32, a:b32",
        step="transpose matrix",
        bits=Moves((), is_always),
        **_WARP,
    ),
)

# -- wgmma ----------------------------------------------------------------------------------------

_ALL: dict[str, Any] = {"bits": "wgmma", "together": "warp"}
_WGMMA: tuple[Opcode, ...] = (
    Opcode(
        "wgmma.mma_async",
        "... d, ...",
        step="wgmma",
        accumulates=True,
        apart=True,
        by_proxy=True,
        **_ALL,
    ),
    Opcode("wgmma.fence", ".sync{.aligned}", step="wgmma fence", **_ALL),
    Opcode("wgmma.commit_group", ".sync{.aligned}", step="commit wgmma", **_ALL),
    Opcode("wgmma.wait_group", ".sync{.aligned} n", step="wait for wgmma", **_ALL),
)

OPCODES: tuple[Opcode, ...] = (
    *_PRODUCTS,
    *_WARP_MATRIX,
    *_WGMMA,
)
