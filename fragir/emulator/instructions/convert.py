"""cvt and cvt.pack (PTX ISA 9.2, sections 9.7.9.21 and 9.7.9.22)."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from fragir.emulator.instructions.alu import Function, elementwise, typed
from fragir.emulator.instructions.convert_packed import ELEMENTS, convert_pairs
from fragir.emulator.instructions.floating_arithmetic import flush
from fragir.emulator.instructions.floating_quick import (
    TYPES,
    between_floats,
    of_integer,
    to_integer,
)
from fragir.emulator.machine.lanes import Step
from fragir.emulator.numbers.formats import FORMATS
from fragir.emulator.numbers.narrowing import narrow
from fragir.emulator.numbers.rounding import decode, encode, quantize, rounded
from fragir.emulator.numbers.types import DTYPES, F64, dtype_of, where, width_of
from fragir.emulator.program.opcode import Moves, Opcode, always

if TYPE_CHECKING:
    from fragir.emulator.instructions.operands import Decoder
    from fragir.ptx.tree import Instruction

#: What cvt.pack packs into.
_PACKED = ("u2", "s2", "u4", "s4", "u8", "s8", "u16", "s16")
_SCALARS = ("f16", "bf16", "f32", "f64")
_INTEGER_MODES = {"rni": "rn", "rzi": "rz", "rmi": "rm", "rpi": "rp"}
_FLOAT_MODES = ("rn", "rna", "rz", "rm", "rp")
_ROUND: dict[str, Function] = {
    "rni": np.rint,
    "rzi": np.trunc,
    "rmi": np.floor,
    "rpi": np.ceil,
}


def limits(kind: str) -> tuple[int, int]:
    """Smallest and largest value of an integer type."""
    bits = int(kind[1:])
    return (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if kind[0] == "s" else (0, (1 << bits) - 1)


def integer_to_integer(into: str, kind: str, sat: bool) -> Function:
    low, high = limits(into)
    source_low, source_high = limits(kind)
    dtype = dtype_of(into)

    def function(a: Any) -> Any:
        if sat:
            a = np.clip(a, max(low, source_low), min(high, source_high))
        return a.astype(dtype)

    return function


def integer_to_float(into: str, mode: str, sat: bool = False) -> Function:
    """`sat`: clamped to [0, 1]."""
    form = FORMATS[into]

    def function(a: Any) -> Any:
        if sat:
            a = np.clip(a, 0, 1)
        if a.dtype.itemsize < 8:
            value = a.astype(np.float64)
        elif into == "f64":
            value = a.astype(np.float64) if mode == "rn" else _exact(a, mode)
        else:
            value = _sticky(a)
        if into != "f64":
            value = quantize(value, form, mode)
        return encode(value, form).astype(np.dtype(f"u{width_of(into) // 8}"))

    return function


def _sticky(a: Any) -> F64:
    """64-bit integers in 53 bits, the last one set where something was cut off."""
    negative = a < 0
    magnitude = where(negative, np.negative(a), a).view(np.uint64)
    big = magnitude >> np.uint64(53) != 0
    low = np.uint64(0x7FF)
    cut = (magnitude & ~low) | ((magnitude & low != 0).astype(np.uint64) << np.uint64(11))
    value = where(big, cut, magnitude).astype(np.float64)
    return where(negative, -value, value)


def _exact(a: Any, mode: str) -> F64:
    values = [rounded(Fraction(int(v)), mode) if v else 0.0 for v in a.ravel()]
    return np.array(values, np.float64).reshape(a.shape)


def float_to_integer(into: str, kind: str, rounding: str, ftz: bool) -> Function:
    """Out of range: the nearest end. NaN: zero, or the top bit where 64 bits are involved."""
    low, high = limits(into)
    nan = 1 << (width_of(into) - 1) if kind == "f64" or width_of(into) == 64 else 0
    unsigned = np.dtype(f"u{width_of(into) // 8}")
    form = FORMATS[kind]

    def function(a: Any) -> Any:
        if ftz:
            a = flush(a, kind)
        value = decode(a, form)
        whole = _ROUND[rounding](value)
        bad = np.isnan(value)
        above, below = whole >= float(high) + 1, whole < float(low)
        if width_of(into) < 64:
            above = whole > high
        inside = where(bad | above | below, 0.0, whole)
        if into == "u64":
            half = inside >= 2.0**63
            result = where(half, inside - 2.0**63, inside).astype(np.int64).view(np.uint64)
            result = where(half, result | np.uint64(1 << 63), result)
        else:
            result = inside.astype(np.int64).view(np.uint64)
        mask64 = (1 << 64) - 1
        result = where(above, np.uint64(high & mask64), result)
        result = where(below, np.uint64(low & mask64), result)
        return where(bad, np.uint64(nan), result).astype(unsigned).view(dtype_of(into))

    return function


def float_to_float(into: str, kind: str, words: tuple[str, ...]) -> Function:
    source, form = FORMATS[kind], FORMATS[into]
    integer = next((w for w in words if w in _ROUND), None)
    mode = next((w for w in words if w in _FLOAT_MODES), "rn")
    ftz = "ftz" in words
    dtype = np.dtype(f"u{max(width_of(into), 8) // 8}")

    def function(a: Any) -> Any:
        if ftz and kind == "f32":
            a = flush(a, kind)
        value = decode(a, source)
        if integer:
            value = np.copysign(_ROUND[integer](value), value)
        bits = narrow(value, form, mode, words).astype(dtype)
        return flush(bits, into) if ftz and into == "f32" else bits

    return function


def convert(d: Decoder, ins: Instruction) -> Step:
    words = ins.opcode
    if "pack" in words[1:2]:
        return _integer_pack(d, ins)
    kinds = [w for w in words[1:] if w in DTYPES]
    if len(kinds) != 2:
        raise d.error(ins, f"the form {ins.mnemonic} is not supported")
    into, kind = kinds
    if into in ELEMENTS:
        return convert_pairs(d, ins, into, kind)
    integer_in, integer_out = kind[0] in "us", into[0] in "us"
    scalars = (*_SCALARS, "tf32") if kind in _SCALARS else _SCALARS
    if not (integer_in or kind in _SCALARS) or not (integer_out or into in scalars):
        raise d.error(ins, f"the form {ins.mnemonic} is not supported")
    rounding = next((w for w in words if w in _ROUND), None)
    mode = next((w for w in words if w in _FLOAT_MODES), "rn")
    function: Function
    quick: Function | None = None
    source = d.source(ins, 1, kind if integer_in else f"u{width_of(kind)}", True)
    out = d.wide_target(ins, d.operand(ins, 0), into)
    if out is not None and not integer_out:
        out = out.view(np.dtype(f"u{out.dtype.itemsize}"))
    if integer_in and integer_out:
        if out is not None and out.dtype.itemsize == dtype_of(into).itemsize:
            out = out.view(dtype_of(into))
        function = integer_to_integer(into, kind, "sat" in words)
    elif integer_in:
        function = integer_to_float(into, mode, "sat" in words)
        quick = of_integer(into, kind, mode, words)
    elif integer_out:
        if rounding is None:
            raise d.error(ins, f"{ins.mnemonic} needs a rounding mode (.rzi, .rni, ...)")
        function = float_to_integer(into, kind, rounding, "ftz" in words)
        if "ftz" not in words:
            quick = to_integer(into, kind, rounding, *limits(into))
    else:
        function = float_to_float(into, kind, words)
        quick = between_floats(into, kind, mode, words)
    if quick is not None and out is not None and out.dtype.itemsize == dtype_of(into).itemsize:
        given = source.dtype if integer_in else TYPES[kind]
        step = typed(quick, out, [source], dtype_of(into), given)
        if step is not None:
            return step
    return elementwise(function, out, [source])


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
    Opcode("cvt", ".INT8.INT8 d, a", convert, bits=Moves((), always), address="same"),
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
        convert,
        address="same",
    ),
    Opcode(
        "cvt",
        """
        .rn|rz{.satfinite}{.relu}.f16x2|bf16x2.f32 d, a, b
        .rn.satfinite{.relu}.NARROWx2|s2f6x2.f32 d, a, b
        .rz|rp{.satfinite}.ue8m0x2.f32 d, a, b
        """,
        convert,
        bits="halves",
        address="same",
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
        convert,
        address="same",
    ),
    Opcode(
        "cvt.pack",
        """
        .sat.u16|s16.s32 d:u32, a, b
        .sat.u8|s8|u4|s4|u2|s2.s32.b32 d:u32, a:2, b:2, c:b32
        """,
        convert,
        address="same",
    ),
)
