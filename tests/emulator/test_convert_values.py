"""cvt between integers and floating point, on every 16-bit source and on edges of wider ones."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from . import floats
from .batch import evaluate_all
from .floats import FORMATS
from .test_convert_narrow import check, nearest
from .test_integer_values import as_kind, clamp, edges, range_of
from .test_scalar_values import edges as float_edges
from .test_scalar_values import halves

INTEGERS = ["u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64"]
PLACE = {"8": "r", "16": "h", "32": "r", "64": "q"}
#: Rounding of a finite f64 value to an integer.
ROUND: dict[str, Callable[[float], int]] = {
    "rni": round,
    "rzi": int,
    "rmi": math.floor,
    "rpi": math.ceil,
}


def place(kind: str) -> str:
    return PLACE[kind.lstrip("usbf")]


def extended(value: int, kind: str) -> int:
    """The bits in the destination register: 8-bit results are extended to 32 bits."""
    width = max(int(kind[1:]), 16) if kind[1:] != "8" else 32
    return value & (1 << width) - 1


@pytest.mark.parametrize("kind", INTEGERS)
def test_between_integers(kind: str) -> None:
    width = int(kind[1:])
    values = edges(width, 40)
    source = place(kind)
    words = [(into, sat) for into in INTEGERS for sat in ("", ".sat")]
    low, high = range_of(kind)
    # .sat only where the source has values that the target lacks.
    words = [(i, s) for i, s in words if not s or low < range_of(i)[0] or high > range_of(i)[1]]
    lines = [f"cvt{sat}.{into}.{kind} %{place(into)}0, %{source}1" for into, sat in words]
    got = evaluate_all(lines, {f"{source}1": np.array(values, np.uint64)})
    for (into, sat), result in zip(words, got, strict=True):
        for value, bits in zip(values, result, strict=True):
            number = as_kind(value, kind)
            wanted = clamp(number, *range_of(into)) if sat else as_kind(number, into)
            assert int(bits) == extended(wanted, into), (kind, into, sat, number)


@pytest.mark.parametrize("kind", ["f16", "bf16"])
def test_all_codes_to_integers(kind: str) -> None:
    values = halves(kind)
    codes = np.arange(1 << 16, dtype=np.uint64)
    words = list(itertools.product(ROUND, INTEGERS if kind == "f16" else INTEGERS[2:]))
    lines = [f"cvt.{m}.{into}.{kind} %{place(into)}0, %h1" for m, into in words]
    got = evaluate_all(lines, {"h1": codes})
    whole = {
        m: [f(x) if math.isfinite(x) else x for x in values.tolist()] for m, f in ROUND.items()
    }
    for (mode, into), result in zip(words, got, strict=True):
        low, high = range_of(into)
        nan = 1 << int(into[1:]) - 1 if into[1:] == "64" else 0
        for code, (number, bits) in enumerate(zip(whole[mode], result.tolist(), strict=True)):
            if number != number:
                wanted = nan
            else:
                wanted = int(max(low, min(high, number)))
            assert bits == extended(wanted, into), (mode, into, hex(code))


@pytest.mark.parametrize("kind", ["u8", "s8", "u16", "s16"])
def test_all_small_integers_to_float(kind: str) -> None:
    width = int(kind[1:])
    codes = np.arange(1 << width, dtype=np.uint64)
    numbers = np.array([as_kind(int(c), kind) for c in codes], np.float64)
    source = place(kind)
    modes = ("rn", "rz", "rm", "rp")
    words = [(m, i) for m in modes for i in ("f16", "bf16") if width > 8 or i == "f16"]
    lines = [f"cvt.{m}.{into}.{kind} %h0, %{source}1" for m, into in words]
    lines += [f"cvt.rn.f32.{kind} %r0, %{source}1", f"cvt.rz.f64.{kind} %q0, %{source}1"]
    lines += [f"cvt.rn.sat.f16.{kind} %h0, %{source}1"]
    *got, single, double, clamped = evaluate_all(lines, {f"{source}1": codes})
    for (mode, into), result in zip(words, got, strict=True):
        check(result, nearest(into, numbers, mode, ""), numbers)
    check(single, numbers.astype(np.float32).view(np.uint32).astype(np.uint64), numbers)
    check(double, numbers.view(np.uint64), numbers)
    check(clamped, nearest("f16", np.clip(numbers, 0, 1), "rn", ""), numbers)


@pytest.mark.parametrize("mode", ["rn", "rz", "rm", "rp"])
def test_between_halves(mode: str) -> None:
    codes = np.arange(1 << 16, dtype=np.uint64)
    lines = [f"cvt.{mode}.bf16.f16 %h0, %h1", f"cvt.{mode}.f16.bf16 %h0, %h1"]
    to_bf16, to_f16 = evaluate_all(lines, {"h1": codes})
    check(to_bf16, nearest("bf16", halves("f16"), mode, ""), codes)
    check(to_f16, nearest("f16", halves("bf16"), mode, ""), codes)


@pytest.mark.parametrize("kind", ["f16", "bf16"])
def test_halves_to_integers_in_the_format(kind: str) -> None:
    values = halves(kind)
    codes = np.arange(1 << 16, dtype=np.uint64)
    got = evaluate_all([f"cvt.{m}.{kind}.{kind} %h0, %h1" for m in ROUND], {"h1": codes})
    functions = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}
    for mode, result in zip(ROUND, got, strict=True):
        with np.errstate(invalid="ignore"):
            whole = np.copysign(functions[mode](values), values)
        check(result, nearest(kind, whole, "rn", ""), codes)


@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_from_wide(kind: str) -> None:
    """f32 and f64 to every narrower float, with every modifier, on edges of all the formats."""
    form = FORMATS[kind]
    values = float_edges(form, 60)
    for narrow in ("f16", "bf16", "f32"):
        for bits in float_edges(FORMATS[narrow], 60, 3):
            state, sign, size = FORMATS[narrow].read(bits)
            if state == "finite":
                exact = form.write((state, sign, size), "rn")
                values += [exact, exact + 1, exact - 1 if exact & ~(1 << form.width - 1) else exact]
    place_ = {"f32": "r", "f64": "q"}[kind]
    modes = ("rn", "rz", "rm", "rp")
    tails = {"f16": ("", ".sat"), "bf16": ("",), "f32": ("", ".sat", ".ftz", ".ftz.sat")}
    words = [(m, t, i) for i in tails for m in modes for t in tails[i] if i != kind]
    if kind == "f32":
        words += [(m, t, i) for i in ("f16", "bf16") for m in ("rn", "rz")
                  for t in (".satfinite", ".relu", ".satfinite.relu")]  # fmt: skip
        words += [("rn", ".ftz", "f16"), ("rz", ".ftz", "bf16")]
    lines = [
        f"cvt.{m}{t}.{i}.{kind} %{'r' if i == 'f32' else 'h'}0, %{place_}1" for m, t, i in words
    ]
    got = evaluate_all(lines, {f"{place_}1": np.array(values, np.uint64)})
    for (mode, tail, into), result in zip(words, got, strict=True):
        target = FORMATS[into]
        for bits, found in zip(values, result, strict=True):
            source = bits
            if "ftz" in tail and kind == "f32" and not bits & 0x7F800000:
                source = bits & 0x80000000
            wanted = target.write(form.read(source), mode, finite="satfinite" in tail)
            state, sign, size = target.read(wanted)
            if (
                ".ftz" in tail
                and into == "f32"
                and size < Fraction(1, 2**126)
                and state == "finite"
            ):
                wanted &= 0x80000000
            if "relu" in tail and sign and state != floats.NAN:
                wanted = 0
            if tail.endswith(".sat"):
                one = target.bias << target.fraction
                above = state != floats.NAN and (state == "inf" or size > 1)
                wanted = 0 if sign or state == floats.NAN else one if above else wanted
            assert int(found) == wanted, (mode, tail, into, hex(bits), hex(int(found)), hex(wanted))


def test_to_tf32() -> None:
    form = floats.Format(8, 10, 0x3FFFF)
    values = float_edges(floats.F32, 200)
    values += [0x3F801000, 0x3F803000, 0x3F802FFF, 0x7F7FF000, 0x7F7FEFFF, 0x00001000, 0x80000FFF]
    words = [(m, t) for m in ("rn", "rz") for t in ("", ".relu", ".satfinite", ".satfinite.relu")]
    words += [("rna", ""), ("rna", ".satfinite")]
    lines = [f"cvt.{m}{t}.tf32.f32 %r0, %r1" for m, t in words]
    got = evaluate_all(lines, {"r1": np.array(values, np.uint64)})
    for (mode, tail), result in zip(words, got, strict=True):
        for bits, found in zip(values, result, strict=True):
            value = floats.F32.read(bits)
            if value[0] == floats.NAN:
                wanted = 0x7FFFFFFF
            elif "relu" in tail and value[1]:
                wanted = 0
            else:
                wanted = form.write(value, mode, finite="satfinite" in tail) << 13
            assert int(found) == wanted, (mode, tail, hex(bits), hex(int(found)))


def test_pack() -> None:
    """cvt.pack: both values clamped; c is shifted up behind them (PTX ISA 9.2, 9.7.9.23)."""
    values = edges(32, 40)
    a = np.array(values * 3, np.uint64)
    b, c = a[::-1].copy(), np.roll(a, 11)
    kinds = ["u16", "s16", "u8", "s8", "u4", "s4", "u2", "s2"]
    lines = [
        f"cvt.pack.sat.{k}.s32" + (".b32" if int(k[1:]) < 16 else "") + " %r0, %r1, %r2"
        + ", %r3" * (int(k[1:]) < 16)
        for k in kinds
    ]  # fmt: skip
    got = evaluate_all(lines, {"r1": a, "r2": b, "r3": c})
    for kind, result in zip(kinds, got, strict=True):
        width = int(kind[1:])
        for x, y, z, bits in zip(a.tolist(), b.tolist(), c.tolist(), result.tolist(), strict=True):
            high, low = (
                clamp(as_kind(v, "s32"), *range_of(kind)) & (1 << width) - 1 for v in (x, y)
            )
            wanted = high << width | low | (z << 2 * width if width < 16 else 0)
            assert bits == wanted & 0xFFFFFFFF, (kind, hex(x), hex(y), hex(z))
