"""cvt against rationals and Python integers."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import ceil, floor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from . import floats
from .conftest import Evaluate
from .floats import FORMATS
from .test_floating import SETTINGS, columns, patterns, rows
from .test_integer import edge, signed

FLOATS = [
    *(("f16", "f32", m) for m in ("rn", "rz", "rm", "rp")),
    *(("bf16", "f32", m) for m in ("rn", "rz")),
    *(("f32", "f64", m) for m in ("rn", "rz", "rm", "rp")),
    ("f16", "f64", "rn"),
    ("f32", "f16", ""),
    ("f32", "bf16", ""),
    ("f64", "f32", ""),
    ("f64", "f16", ""),
]


@pytest.mark.parametrize(("into", "kind", "mode"), FLOATS)
@SETTINGS
@given(data=st.data())
def test_between_formats(
    into: str, kind: str, mode: str, data: st.DataObject, evaluate: Evaluate
) -> None:
    source, form = FORMATS[kind], FORMATS[into]
    values = data.draw(rows(source, 1))
    words = ["cvt", *([mode] if mode else []), into, kind]
    got = evaluate(".".join(words), columns(values, source), form.width)
    for (bits,), result in zip(values, got, strict=True):
        wanted = form.write(source.read(bits), mode or "rn")
        assert int(result) == wanted, (hex(bits), hex(int(result)), hex(wanted))


@pytest.mark.parametrize("kind", ["e4m3", "e5m2"])
@SETTINGS
@given(data=st.data())
def test_to_fp8(kind: str, data: st.DataObject, evaluate: Evaluate) -> None:
    form = FORMATS[kind]
    values = data.draw(rows(floats.F32, 2))
    got = evaluate(f"cvt.rn.satfinite.{kind}x2.f32", columns(values, floats.F32), 16)
    for (high, low), result in zip(values, got, strict=True):
        wanted = [form.write(floats.F32.read(x), "rn", finite=True) for x in (high, low)]
        assert int(result) == wanted[0] << 8 | wanted[1], (hex(high), hex(low))


@pytest.mark.parametrize("kind", ["e4m3", "e5m2"])
def test_from_fp8(kind: str, evaluate: Evaluate) -> None:
    every = np.arange(1 << 16, dtype=np.uint16)[::7]
    got = evaluate(f"cvt.rn.f16x2.{kind}x2", [every], 32)
    for bits, result in zip(every, got, strict=True):
        low, high = (
            floats.F16.write(FORMATS[kind].read(int(bits) >> shift & 0xFF), "rn")
            for shift in (0, 8)
        )
        assert int(result) == high << 16 | low


@SETTINGS
@given(data=st.data())
def test_packing_and_relu(data: st.DataObject, evaluate: Evaluate) -> None:
    values = data.draw(rows(floats.F32, 2))
    for kind in ("f16", "bf16"):
        form = FORMATS[kind]
        plain = evaluate(f"cvt.rn.{kind}x2.f32", columns(values, floats.F32), 32)
        clamped = evaluate(f"cvt.rn.relu.{kind}x2.f32", columns(values, floats.F32), 32)
        for pair, p, c in zip(values, plain, clamped, strict=True):
            high, low = (form.write(floats.F32.read(x), "rn") for x in pair)
            assert int(p) == high << 16 | low
            high, low = (0 if x >> 15 else x for x in (high, low))
            assert int(c) == high << 16 | low


@SETTINGS
@given(data=st.data())
def test_to_tf32(data: st.DataObject, evaluate: Evaluate) -> None:
    """rna.tf32: to 10 fraction bits, halves away from zero."""
    values = data.draw(rows(floats.F32, 1))
    got = evaluate("cvt.rna.tf32.f32", columns(values, floats.F32), 32)
    narrow = floats.Format(8, 10, 0x3FFFF)
    for (bits,), result in zip(values, got, strict=True):
        value = floats.F32.read(bits)
        if value[0] == floats.NAN:
            assert int(result) & 0x7FFFFFFF > 0x7F800000
        else:
            assert int(result) == narrow.write(value, "rna") << 13


ROUND: dict[str, Callable[[Fraction], int]] = {
    "rni": round,
    "rzi": int,
    "rmi": floor,
    "rpi": ceil,
}


@pytest.mark.parametrize("into", ["s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64"])
@pytest.mark.parametrize("kind", ["f16", "f32", "f64"])
@pytest.mark.parametrize("mode", ROUND)
@SETTINGS
@given(data=st.data())
def test_to_integer(
    into: str, kind: str, mode: str, data: st.DataObject, evaluate: Evaluate
) -> None:
    form, width = FORMATS[kind], int(into[1:])
    values = data.draw(rows(form, 1))
    output = max(width, 16)
    got = evaluate(f"cvt.{mode}.{into}.{kind}", columns(values, form), output)
    low, high = (
        (-(1 << (width - 1)), (1 << (width - 1)) - 1) if into[0] == "s" else (0, (1 << width) - 1)
    )
    for (bits,), result in zip(values, got, strict=True):
        number, sign, _ = value = form.read(bits)
        if number == floats.NAN:
            wanted = 1 << (width - 1) if kind == "f64" or width == 64 else 0
            if into[0] == "s" and wanted:
                wanted -= 1 << width
        elif number == floats.INF:
            wanted = low if sign else high
        else:
            wanted = max(low, min(high, ROUND[mode](floats.signed(value))))
        assert int(result) == wanted & ((1 << output) - 1), (hex(bits), hex(int(result)), wanted)


@pytest.mark.parametrize("into", ["f16", "bf16", "f32", "f64"])
@pytest.mark.parametrize("kind", ["s16", "u32", "s32", "s64", "u64"])
@pytest.mark.parametrize("mode", ["rn", "rz", "rm", "rp"])
@SETTINGS
@given(data=st.data())
def test_from_integer(
    into: str, kind: str, mode: str, data: st.DataObject, evaluate: Evaluate
) -> None:
    form, width = FORMATS[into], int(kind[1:])
    values = data.draw(st.lists(edge(width), min_size=32, max_size=64))
    got = evaluate(f"cvt.{mode}.{into}.{kind}", [np.array(values, f"u{width // 8}")], form.width)
    for bits, result in zip(values, got, strict=True):
        number = signed(bits, width) if kind[0] == "s" else bits
        exact = ("finite", int(number < 0), Fraction(abs(number)))
        assert int(result) == form.write(exact, mode), (number, mode)


@SETTINGS
@given(data=st.data())
def test_integer_widths(data: st.DataObject, evaluate: Evaluate) -> None:
    values = np.array(data.draw(st.lists(edge(32), min_size=32, max_size=64)), np.uint32)
    whole = values.astype(np.int64)
    as_signed = values.view(np.int32).astype(np.int64)
    assert (evaluate("cvt.s64.s32", [values], 64).view(np.int64) == as_signed).all()
    assert (evaluate("cvt.u64.u32", [values], 64).view(np.int64) == whole).all()
    assert (
        evaluate("cvt.sat.s16.s32", [values], 16).view(np.int16)
        == np.clip(as_signed, -32768, 32767)
    ).all()
    assert (evaluate("cvt.sat.u8.s32", [values], 32) == np.clip(as_signed, 0, 255)).all()
    assert (
        evaluate("cvt.s32.s8", [values], 32).view(np.int32) == values.astype(np.uint8).view(np.int8)
    ).all()


@SETTINGS
@given(data=st.data())
def test_round_to_integer_in_the_format(data: st.DataObject, evaluate: Evaluate) -> None:
    values = data.draw(st.lists(patterns(floats.F32), min_size=32, max_size=64))
    got = evaluate("cvt.rni.f32.f32", [np.array(values, np.uint32)], 32)
    for bits, result in zip(values, got, strict=True):
        number, sign, _ = value = floats.F32.read(bits)
        if number == "finite":
            value = ("finite", sign, Fraction(abs(round(floats.signed(value)))))
        assert int(result) == floats.F32.write(value, "rn")
