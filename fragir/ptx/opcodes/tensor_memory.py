"""Tensor memory and its products (PTX ISA 9.4, section 9.7.18)."""

from __future__ import annotations

from fragir.ptx.opcodes.row import Columns, Opcode, rule_apart

_WARP: Columns = {"together": "warp"}
_LATER: Columns = {"asynchronous": True, "by_proxy": True, "bits": "tensor"}

# -- allocation -----------------------------------------------------------------------------------

_ALLOCATION: Columns = {"ends": "allocation", **_WARP}
_ALLOCATIONS: tuple[Opcode, ...] = (
    Opcode(
        "tcgen05.alloc",
        "{.exclusive}.PAIR.sync.aligned{.shared::cta}.b32 [a], n",
        **_ALLOCATION,
    ),
    Opcode("tcgen05.dealloc", "{.exclusive}.PAIR.sync.aligned.b32 a, n", **_ALLOCATION),
    Opcode("tcgen05.relinquish_alloc_permit", ".PAIR.sync.aligned", **_ALLOCATION),
)

#: Why something is not emulated.
_FIGURES = "what it writes is described by figures only"
_TABLES = "how its tables lie in tensor memory is described by figures only"
_SIXTEEN = "nobody has described the arithmetic of kind::ti16"
_RESTRICTED = "what it restricts is not documented"

# -- loads and stores -----------------------------------------------------------------------------

#: How often each shape may be repeated: up to 128 registers.
_REPEATED = (
    ("32x32b|16x64b", "x1|x2|x4|x8|x16|x32|x64|x128", ""),
    ("16x128b", "x1|x2|x4|x8|x16|x32|x64", ""),
    ("16x256b", "x1|x2|x4|x8|x16|x32", ""),
    ("16x32bx2", "x1|x2|x4|x8|x16|x32|x64|x128", ", n"),
)
#: What ptxas skips there.
_SKIPPED = "row col"
_SEVERAL = "x2|x4|x8|x16|x32|x64|x128"
_COMPRESSED = ".sync.aligned.32x32b.x4|x8|x16|x32|x64|x128.min|max.sp::2:4{.abs}"
_LOAD: Columns = {
    "step": "load tensor memory",
    "bits": "tensor load",
    "address": "number",
    "apart": True,
    "beside": _SKIPPED,
    **_WARP,
}
_MOVES: tuple[Opcode, ...] = (
    Opcode(
        "tcgen05.ld",
        "\n".join(
            f".sync.aligned.{shape}.{count}{{.pack::16b}}.b32 d, [t]{offset}"
            for shape, count, offset in _REPEATED
        ),
        **_LOAD,
    ),
    Opcode(
        "tcgen05.ld.red",
        "\n".join(
            f".sync.aligned.{shape}.{_SEVERAL}.min|max{types} d, d2, [t]{offset}"
            for shape, offset in (("32x32b", ""), ("16x32bx2", ", n"))
            for types in ("{.abs}{.NaN}.f32", ".u32|s32")
        ),
        **_LOAD,
    ),
    Opcode(
        "tcgen05.ld.spcompress",
        f"{_COMPRESSED}.f32.b2 d:b32, d2:f32, [t] ! {_FIGURES}",
        **_LOAD,
    ),
    Opcode(
        "tcgen05.ld.red.spcompress",
        f"{_COMPRESSED}{{.NaN}}.f32.b2 d:b32, d2:f32, d3:f32, [t] ! {_FIGURES}",
        **_LOAD,
    ),
    Opcode(
        "tcgen05.st",
        "\n".join(
            f".sync.aligned.{shape}.{count}{{.unpack::16b}}.b32 [t]{offset}, b"
            for shape, count, offset in _REPEATED
        ),
        step="store tensor memory",
        bits="tensor store",
        beside=_SKIPPED,
        **_WARP,
    ),
)

# -- order ----------------------------------------------------------------------------------------

_ARRIVAL = "{.shared::cluster}{.MULTI_BITS}.b64 [m]{, c?MULTI_BITS}"
_ORDER: tuple[Opcode, ...] = (
    *(
        Opcode(f"tcgen05.wait::{way}", ".sync.aligned", step="wait for tensor memory", **_WARP)
        for way in ("ld", "st")
    ),
    *(
        Opcode(f"tcgen05.fence::{way}_thread_sync", "", step="tensor fence")
        for way in ("before", "after")
    ),
    Opcode(
        "tcgen05.commit",
        f".PAIR.mbarrier::arrive::one{_ARRIVAL}\n"
        ".PAIR.mbarrier::arrive::one.sync_restrict::shared::read::mma::a"
        f"{_ARRIVAL} ! {_RESTRICTED}",
        step="commit tensor work",
        asynchronous=True,
        bits="mbarrier",
    ),
)

# -- copies and products --------------------------------------------------------------------------

_COPIED = ("128x256b|4x256b|128x128b", "64x128b.warpx2::02_13|warpx2::01_23", "32x128b.warpx4")
#: Operands of a product; A is a descriptor, or an address in brackets.
_PLAIN = "[t], a, b:b64{, [e]?sp}, i:b32{, mask}, p:pred"
_LOOKED_UP = "[t], a, b:b64, [l], i:b32{, mask}, p:pred"
_SCALED = "[t], a, b:b64{, [e]?sp}, i:b32, [sa], [sb], p:pred"
_APART = "[t], a, b:b64{, [e]?sp}, i:b32, p:pred{, z:b64}"
_UNDOCUMENTED = "what scale-input-d does to integers is not documented"
_HINTS = "{.USE_A}{.USE_B}"
_PRODUCTS: tuple[Opcode, ...] = (
    Opcode(
        "tcgen05.cp",
        "\n".join(
            f".PAIR.{shape}{types} [t], s:b64"
            for shape in _COPIED
            for types in ("", ".b8x16.b6x16_p32|b4x16_p64")
        ),
        step="copy to tensor memory",
        beside=_SKIPPED,
        **_LATER,
    ),
    Opcode("tcgen05.shift", ".PAIR.down [t]", step="shift tensor memory", **_LATER),
    Opcode(
        "tcgen05.mma",
        f"""
        {{.sp}}.PAIR.kind::f16|kind::tf32{{.ashift}}{_HINTS} {_PLAIN}{{, scale}}
        {{.sp}}.PAIR.kind::f8f6f4{{.ashift}}{_HINTS} {_PLAIN}
        {{.sp}}.PAIR.kind::ti16{{.ashift}}{_HINTS} {_PLAIN} ! {_SIXTEEN}
        {{.sp}}.PAIR.kind::i8{{.ashift}}{{.USE_A}} {_PLAIN}
        {{.sp}}.PAIR.kind::i8{{.ashift}}{{.USE_A}}\
            [t], a, b:b64{{, [e]?sp}}, i:b32, mask, p:pred, scale ! {_UNDOCUMENTED}
        .PAIR.kind::f8f6f4.decompress::lut::b{_HINTS} {_LOOKED_UP} ! {_TABLES}
        {{.sp}}.PAIR.kind::mxf8f6f4.block_scale{{.scale_vec::1X|block32}}{_HINTS} {_SCALED}
        {{.sp}}.PAIR.kind::mxf4.block_scale{{.scale_vec::2X|block32}}{_HINTS} {_SCALED}
        {{.sp}}.PAIR.kind::mxf4nvf4.block_scale.scale_vec::2X|scale_vec::4X|block16|block32{_HINTS}\
            {_SCALED}
        .PAIR.kind::mxf8f6f4.block_scale.decompress::lut::b{{.scale_vec::1X|block32}}{_HINTS}\
            [t], a, b:b64, [l], i:b32, [sa], [sb], p:pred ! {_TABLES}
        """,
        step="tensor product",
        rules=(rule_apart("ashift", "collector::a::fill collector::a::use"),),
        **_LATER,
    ),
    Opcode(
        "tcgen05.mma.ws",
        f"""
        {{.sp}}.cta_group::1.kind::f16|kind::tf32|kind::f8f6f4|kind::i8{{.USE_BANK}} {_APART}
        {{.sp}}.cta_group::1.kind::ti16{{.USE_BANK}} {_APART} ! {_SIXTEEN}
        """,
        step="tensor product",
        **_LATER,
    ),
)

OPCODES: tuple[Opcode, ...] = (
    *_ALLOCATIONS,
    *_MOVES,
    *_ORDER,
    *_PRODUCTS,
)
