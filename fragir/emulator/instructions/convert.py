"""cvt and cvt.pack (PTX ISA 9.2, sections 9.7.9.21 and 9.7.9.22)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fragir.emulator.instructions.alu import elementwise
from fragir.emulator.instructions.convert_packed import convert_pairs, straight_pairs
from fragir.emulator.machine.lanes import Step
from fragir.emulator.program.opcode import Moves, Opcode, always

if TYPE_CHECKING:
    from fragir.emulator.instructions.operands import Decoder
    from fragir.ptx.tree import Instruction

#: What cvt.pack packs into.
_PACKED = ("u2", "s2", "u4", "s4", "u8", "s8", "u16", "s16")


def limits(kind: str) -> tuple[int, int]:
    """Smallest and largest value of an integer type."""
    bits = int(kind[1:])
    return (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if kind[0] == "s" else (0, (1 << bits) - 1)


def _integer_pack(d: Decoder, ins: Instruction) -> Step:
    """cvt.pack.sat: two integers clamped and packed, c shifted up behind them."""
    types = [w for w in ins.opcode[2:] if w != "sat"]
    match types:
        case [into, ("s32" | "u32") as kind, *rest] if into in _PACKED and rest in ([], ["b32"]):
            pass
        case _:
            raise d.error(ins, f"the form {ins.mnemonic} is not supported")
    if d.count(ins) != 1 + len(types):
        raise d.error(ins, f"{ins.mnemonic} takes {1 + len(types)} operands, not {d.count(ins)}")
    width = int(into[1:])  # also 4 and 2 bits
    low, high = limits(into)
    mask = (1 << width) - 1

    def function(a: Any, b: Any, *c: Any) -> Any:
        upper, lower = (np.clip(x.astype(np.int64), low, high) & mask for x in (a, b))
        packed = (upper << width) | lower
        if c:
            packed = packed | (c[0].astype(np.int64) << (2 * width))
        return packed.astype(np.uint32)

    sources = [d.source(ins, 1, kind), d.source(ins, 2, kind)]
    if d.count(ins) > 3:
        sources.append(d.source(ins, 3, "u32"))
    return elementwise(function, d.target(ins, 0, "u32"), sources)


OPCODES: tuple[Opcode, ...] = (
    Opcode(
        "cvt", ".INT8.INT8 d, a", "convert(a)", bits=Moves((), always), address="same", wider=True
    ),
    Opcode(
        "cvt",
        """
        .sat.u8.s8|INT d, a
        .sat.s8.u8|INT d, a
        .sat.u16.s8|s16|u32|s32|u64|s64 d, a
        .sat.s16.u16|u32|s32|u64|s64 d, a
        .sat.u32.s8|s16|s32|u64|s64 d, a
        .sat.s32.u32|u64|s64 d, a
        .sat.u64.s8|s16|s32|s64 d, a
        .sat.s64.u64 d, a
        .RND{.sat}.f16|f64.INT8 d, a
        .RND{.ftz}{.sat}.f32.INT8|f64 d, a
        .RND.bf16.INT8 d, a
        .IRND{.ftz}{.sat}.INT8.f32 d, a
        .IRND{.sat}.INT8.f16|f64 d, a
        .IRND.INT8.bf16 d, a
        {.IRND}{.sat}.f16.f16 d, a
        {.IRND}{.sat}.f64.f64 d, a
        {.IRND}{.ftz}{.sat}.f32.f32 d, a
        {.IRND}.bf16.bf16 d, a
        {.RND}.bf16.f16 d, a
        {.RND}.f16|f64.bf16 d, a
        {.RND}{.ftz}.f32.bf16 d, a
        {.ftz}{.sat}.f32.f16 d, a
        {.ftz}{.sat}.f64.f32 d, a
        {.sat}.f64.f16 d, a
        .RND{.sat}.f16.f64 d, a
        .RND.bf16.f64 d, a
        .RND{.ftz}{.sat}.f16.f32 d, a
        .RND{.ftz}.bf16.f32 d, a
        .rn|rz{.satfinite}{.relu}.f16|bf16|tf32.f32 d, a
        .rna{.satfinite}.tf32.f32 d, a
        """,
        "convert(a)",
        address="same",
        wider=True,
    ),
    Opcode(
        "cvt",
        """
        .rn|rz{.satfinite}{.relu}.f16x2|bf16x2.f32 d, a, b
        .rn.satfinite{.relu}.NARROWx2|s2f6x2.f32 d, a, b
        .rz|rp{.satfinite}.ue8m0x2.f32 d, a, b
        """,
        convert_pairs,
        bits="halves",
        address="same",
        straight=straight_pairs,
    ),
    Opcode(
        "cvt",
        """
        .rs{.satfinite}{.relu}.f16x2|bf16x2.f32 d, a, b, r:b32
        .rs.satfinite{.relu}.NARROWx4.f32 d, a:f32x4, r:b32
        .rn.satfinite{.relu}.scaled::n2::ue8m0.s2f6x2.f32 d, a, b, s:b16
        .rn.satfinite{.relu}.scaled::n2::ue8m0.s2f6x2.bf16x2 d, a, s:b16
        .rn.satfinite{.relu}.NARROWx2.f16x2|bf16x2 d, a
        .rn.satfinite{.relu}.s2f6x2.bf16x2 d, a
        .rn{.relu}.f16x2.NARROWx2 d, a
        .rn{.satfinite}{.relu}.bf16x2.NARROWx2|s2f6x2 d, a
        .rn{.satfinite}{.relu}.scaled::n2::ue8m0.bf16x2.NARROWx2|s2f6x2 d, a, s:b16
        .rz|rp{.satfinite}.ue8m0x2.bf16x2 d, a
        .rn.bf16x2.ue8m0x2 d, a
        """,
        convert_pairs,
        address="same",
    ),
    Opcode(
        "cvt.pack",
        """
        .sat.u16|s16.s32 d:u32, a, b
        .sat.u8|s8|u4|s4|u2|s2.s32.b32 d:u32, a:2, b:2, c:b32
        """,
        _integer_pack,
        address="same",
    ),
)
