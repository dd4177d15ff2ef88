"""cvt and cvt.pack (PTX ISA 9.2, sections 9.7.9.21 and 9.7.9.22)."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from fragir.emulator.alu import Decode, Function, elementwise
from fragir.emulator.common import DTYPES, Step, dtype_of, where, width_of
from fragir.emulator.floating import flush
from fragir.emulator.rounding import (
    F64,
    FORMATS,
    Format,
    decode,
    encode,
    quantize,
    rounded,
    saturate,
)

if TYPE_CHECKING:
    from fragir.emulator.decode import Decoder
    from fragir.ptx.tree import Instruction

_INTEGER_MODES = {"rni": "rn", "rzi": "rz", "rmi": "rm", "rpi": "rp"}
_FLOAT_MODES = ("rn", "rna", "rz", "rm", "rp")
_ROUND: dict[str, Function] = {
    "rni": np.rint,
    "rzi": np.trunc,
    "rmi": np.floor,
    "rpi": np.ceil,
}
_PACKED = {
    "f16x2": "f16",
    "bf16x2": "bf16",
    "e4m3x2": "e4m3",
    "e5m2x2": "e5m2",
    "e2m1x2": "e2m1",
    "e2m3x2": "e2m3",
    "e3m2x2": "e3m2",
}


def limits(kind: str) -> tuple[int, int]:
    """Smallest and largest value of an integer type."""
    bits = width_of(kind)
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


def integer_to_float(into: str, mode: str) -> Function:
    form = FORMATS[into]

    def function(a: Any) -> Any:
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


def narrow(value: F64, form: Format, mode: str, words: tuple[str, ...]) -> Any:
    """Values to a format's bits under .sat, .satfinite, .relu."""
    if "relu" in words:
        value = where(value < 0, 0.0, value)
        value = where(value == 0, 0.0, value)
    if form.name != "f64":
        value = quantize(value, form, mode)
    finite = "satfinite" in words or form.nan is None
    if finite or not form.infinity:
        value = saturate(value, form) if finite else value
    if "sat" in words:
        value = where(np.isnan(value), 0.0, np.clip(value, 0.0, 1.0))
        value = where(value == 0, 0.0, value)
    return encode(value, form)


def float_to_float(into: str, kind: str, words: tuple[str, ...]) -> Function:
    source, form = FORMATS[kind], FORMATS[into]
    integer = next((w for w in words if w in _ROUND), None)
    mode = next((w for w in words if w in _FLOAT_MODES), "rn")
    ftz = "ftz" in words
    dtype = np.dtype(f"u{max(width_of(into), 8) // 8}")

    def function(a: Any) -> Any:
        if ftz and kind in ("f32", "f16"):
            a = flush(a, kind)
        value = decode(a, source)
        if integer:
            value = np.copysign(_ROUND[integer](value), value)
        bits = narrow(value, form, mode, words).astype(dtype)
        return flush(bits, into) if ftz and into == "f32" else bits

    return function


def _pack(high: Any, low: Any, width: int, total: int) -> Any:
    dtype = np.dtype(f"u{total // 8}")
    return (high.astype(dtype) << dtype.type(width)) | low.astype(dtype)


def _element_width(form: str) -> int:
    return {"f16": 16, "bf16": 16, "e2m1": 4}.get(form, 8)


def _pairs(d: Decoder, ins: Instruction, into: str, kind: str) -> Step:
    """Two values at once: from two registers, or from a packed one."""
    words = ins.opcode
    if "rs" in words or any(w.startswith("scaled") for w in words):
        raise d.error(ins, f"{ins.mnemonic} is not supported")
    mode = next((w for w in words if w in _FLOAT_MODES), "rn")
    form = FORMATS[_PACKED[into]]
    width = _element_width(form.name)
    total = width_of(into)
    if kind == "f32":
        source = FORMATS["f32"]
        ftz = "ftz" in words

        def from_two(a: Any, b: Any) -> Any:
            if ftz:
                a, b = flush(a, "f32"), flush(b, "f32")
            high = narrow(decode(a, source), form, mode, words)
            low = narrow(decode(b, source), form, mode, words)
            return _pack(high, low, width, total)

        out = d.target(ins, 0, f"u{total}")
        return elementwise(from_two, out, [d.source(ins, 1, "u32"), d.source(ins, 2, "u32")])
    source = FORMATS[_PACKED[kind]]
    source_width = _element_width(source.name)

    def from_packed(a: Any) -> Any:
        low_bits = a & a.dtype.type((1 << source_width) - 1)
        high_bits = a >> a.dtype.type(source_width)
        low = narrow(decode(low_bits, source), form, mode, words)
        high = narrow(decode(high_bits, source), form, mode, words)
        return _pack(high, low, width, total)

    out = d.target(ins, 0, f"u{total}")
    return elementwise(from_packed, out, [d.source(ins, 1, f"u{width_of(kind)}")])


def convert(d: Decoder, ins: Instruction) -> Step:
    words = ins.opcode
    if words[1] == "pack":
        return _integer_pack(d, ins)
    kinds = [w for w in words[1:] if w in DTYPES]
    if len(kinds) != 2:
        raise d.error(ins, f"the form {ins.mnemonic} is not supported")
    into, kind = kinds
    if into in _PACKED:
        return _pairs(d, ins, into, kind)
    integer_in, integer_out = kind[0] in "us", into[0] in "us"
    rounding = next((w for w in words if w in _ROUND), None)
    mode = next((w for w in words if w in _FLOAT_MODES), "rn")
    function: Function
    if "rs" in words:
        raise d.error(ins, f"the form {ins.mnemonic} is not supported")
    source = d.source(ins, 1, kind if integer_in else f"u{width_of(kind)}", True)
    out = d.wide_target(ins, d.operand(ins, 0), into)
    if out is not None and not integer_out:
        out = out.view(np.dtype(f"u{out.dtype.itemsize}"))
    if integer_in and integer_out:
        if out is not None and out.dtype.itemsize == dtype_of(into).itemsize:
            out = out.view(dtype_of(into))
        function = integer_to_integer(into, kind, "sat" in words)
    elif integer_in:
        function = integer_to_float(into, mode)
    elif integer_out:
        if rounding is None:
            raise d.error(ins, f"{ins.mnemonic} needs a rounding mode (.rzi, .rni, ...)")
        function = float_to_integer(into, kind, rounding, "ftz" in words)
    else:
        function = float_to_float(into, kind, words)
    return elementwise(function, out, [source])


def _integer_pack(d: Decoder, ins: Instruction) -> Step:
    """cvt.pack.sat: two integers clamped and packed, c shifted up behind them."""
    into = ins.opcode[3]
    low, high = limits(into)
    width = width_of(into)
    mask = (1 << width) - 1

    def function(a: Any, b: Any, *c: Any) -> Any:
        upper, lower = (np.clip(x.astype(np.int64), low, high) & mask for x in (a, b))
        packed = (upper << width) | lower
        if c:
            packed = packed | (c[0].astype(np.int64) << (2 * width))
        return packed.astype(np.uint32)

    sources = [d.source(ins, 1, ins.opcode[4]), d.source(ins, 2, ins.opcode[4])]
    if d.count(ins) > 3:
        sources.append(d.source(ins, 3, "u32"))
    return elementwise(function, d.target(ins, 0, "u32"), sources)


TABLE: dict[str, Decode] = {"cvt": convert}
