"""Instructions of tensor cores (PTX ISA 9.2, sections 9.7.14 to 9.7.16)."""

from __future__ import annotations

from fragir.ptx.opcodes.row import Columns, Moves, Opcode, is_always

# -- products -------------------------------------------------------------------------------------

#: What ptxas skips in most of them.
_SKIPPED = "b1 u4 s4 bf16 tf32 row col v2"
_MATRIX: Columns = {
    "bits": "matrix",
    "address": "number",
    "apart": True,
    "together": "warp",
    "beside": _SKIPPED,
}
#: Which of their types and shapes go together: `fragir/emulator/tensor_cores/mma.py`, `wmma.py`.
_PRODUCTS: tuple[Opcode, ...] = (
    Opcode(
        "mma",
        """
        {.SP}.sync.aligned.SHAPE.LAYOUT.LAYOUT{.satfinite}.SUM.FACTOR.FACTOR.SUM d, ...
        .sync.aligned.SHAPE.LAYOUT.LAYOUT{.RND}.f64.f64.f64.f64 d, ...
        .sync.aligned.SHAPE.LAYOUT.LAYOUT{.satfinite}.s32.b1.b1.s32.xor|and.popc d, ...
        {.SP}.sync.aligned.SHAPE.LAYOUT.LAYOUT.kind::f8f6f4.f16|f32.F8F6F4.F8F6F4.f16|f32 d, ...
        {.SP}.sync.aligned.SHAPE.LAYOUT.LAYOUT.MX.block_scale{.VEC}.f32.F8F6F4.F8F6F4.f32.SF d, ...
        """,
        step="mma",
        fuses=True,
        **_MATRIX,
    ),
    Opcode(
        "wmma.mma",
        """
        .sync.aligned.LAYOUT.LAYOUT.SHAPE.f16|f32.f16|f32{.satfinite} d, a, b, c
        .sync.aligned.LAYOUT.LAYOUT.SHAPE.f32|s32.WFACTOR.WFACTOR.f32|s32{.satfinite} d, a, b, c
        .sync.aligned.LAYOUT.LAYOUT.SHAPE{.RND}.f64.f64.f64.f64 d, a, b, c
        .xor|and.popc.sync.aligned.LAYOUT.LAYOUT.SHAPE.s32.b1.b1.s32{.satfinite} d, a, b, c
        """,
        step="mma",
        **_MATRIX,
    ),
)

# -- warp matrix ----------------------------------------------------------------------------------

_WARP: Columns = {"together": "warp", "beside": _SKIPPED}
_WARP_MATRIX: tuple[Opcode, ...] = (
    *(
        Opcode(
            f"wmma.load.{operand}",
            f".sync.aligned.LAYOUT.SHAPE{{.GLOBAL}}.{types} d, [a]{{, stride}}",
            step="wmma",
            bits="load fragment",
            access="load",
            address="number",
            apart=True,
            **_WARP,
        )
        for operand, types in {**dict.fromkeys("ab", "f16|WFACTOR|f64|b1"), "c": "SUM"}.items()
    ),
    Opcode(
        "wmma.store.d",
        ".sync.aligned.LAYOUT.SHAPE{.GLOBAL}.SUM [a], b{, stride}",
        step="wmma",
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

_ALL: Columns = {"bits": "wgmma", "together": "warp"}
_WGMMA: tuple[Opcode, ...] = (
    Opcode(
        "wgmma.mma_async",
        """
        {.sp}.sync{.aligned}.WGMMA{.satfinite}.SUM.FACTOR.FACTOR d, ...
        .sync{.aligned}.WGMMA{.satfinite}.s32.b1.b1.and.popc d, ...
        """,
        step="wgmma",
        accumulates=True,
        apart=True,
        by_proxy=True,
        beside=_SKIPPED,
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
