"""The short roads of floating-point instructions, against the long ones and against rationals.

The long roads compute in f64 rounded to odd and round once more, by the format's own definition;
the short ones trust a rounded sum and test for what may be wrong with it. `FRAGIR_DEEP=1` takes
500,000 values a case.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from fragir.emulator.instructions.computed import value
from fragir.emulator.instructions.convert import pair_of_singles
from fragir.emulator.numbers.rounding import decode, encode, narrowed_bits, quantize, sum_odd
from fragir.emulator.numbers.types import FORMATS
from fragir.emulator.values.arrays import definition
from fragir.emulator.values.language import range_of
from fragir.emulator.values.reals import flush, quotient_odd, root_odd
from fragir.emulator.values.roads import TYPES, Quick, short_road
from fragir.ptx.opcodes.table import OPCODES

Bits = npt.NDArray[Any]
#: Values a case: 16 chunks, some of one warp, where other roads are taken than for many.
COUNT = 500_000 if os.environ.get("FRAGIR_DEEP") else 6_000
FORMS = ("f32", "f16", "bf16")
UNSIGNED = {"f32": np.uint32, "f16": np.uint16, "bf16": np.uint16}


def specials(form: str) -> Bits:
    """Zeros, ends of the subnormal and the normal numbers, one and its neighbours, Inf, NaN."""
    shape = FORMATS[form]
    one = shape.bias << shape.fraction
    top = ((1 << shape.exponent) - 1) << shape.fraction
    low = 1 << shape.fraction
    values = [0, 1, 2, 3, low - 1, low, low + 1, one - 1, one, one + 1, one + low, top - 1, top]
    values += [top + 1, top + 5, one + (1 << (shape.fraction - 1)), top - low, one + 9 * low]
    sign = 1 << (shape.exponent + shape.fraction)
    return np.array([*values, *(v | sign for v in values)], UNSIGNED[form])


def operands(form: str, count: int, seed: int) -> list[Bits]:
    """Arrays [n, 32] of random bits, of numbers near each other, of few bits, of special ones."""
    rng = np.random.default_rng(seed)
    shape, dtype = FORMATS[form], UNSIGNED[form]
    bits = shape.exponent + shape.fraction + 1
    size = (COUNT // 64 * 32,)
    several: list[Bits] = []
    one, scale = shape.bias << shape.fraction, 1 << shape.fraction
    for _ in range(count):
        anything = rng.integers(0, 1 << bits, size).astype(dtype)
        near = (one + rng.integers(-6 * scale, 6 * scale, size)).astype(dtype)
        near |= (rng.integers(0, 2, size) << (bits - 1)).astype(dtype)
        # the lower half of the fraction empty: products are short, and sums often ties
        short = near & dtype(((1 << bits) - 1) ^ ((1 << (shape.fraction + 1) // 2) - 1))
        tiny = rng.integers(0, 3 * scale, size).astype(dtype)
        tiny |= (rng.integers(0, 2, size) << (bits - 1)).astype(dtype)
        choice = rng.integers(0, 4, size)
        several.append(np.choose(choice, [anything, near, short, tiny]).astype(dtype))
    some = specials(form)
    ends = some if count < 3 else some[:: 1 if COUNT > 10_000 else 2]
    grid = np.array(list(product(ends, repeat=count)), dtype).T
    grid = grid[:, : grid.shape[1] // 32 * 32]
    return [np.concatenate([a, b]).reshape(-1, 32) for a, b in zip(several, grid, strict=True)]


def same(
    short: Callable[..., Any], long: Callable[..., Any], rows: Sequence[Bits], seen: Any
) -> None:
    """Equal bits for one warp, which numpy may compute elsewhere, and for many at once.

    `seen`: the type in which the short road takes its operands.
    """
    with np.errstate(all="ignore"):
        for part in (slice(0, 1), slice(1, 2), slice(2, None)):
            given = [np.ascontiguousarray(row[part]) for row in rows]
            before = [row.copy() for row in given]
            expected = np.asarray(long(*given))
            found = np.asarray(short(*[row.view(seen) for row in given])).view(expected.dtype)
            wrong = np.argwhere(found != expected)
            if len(wrong):
                at = tuple(wrong[0])
                values = [hex(int(row[at])) for row in given]
                text = f"{len(wrong)} wrong: {values} -> {found[at]:#x}, not {expected[at]:#x}"
                pytest.fail(text)
            assert all((a == b).all() for a, b in zip(given, before, strict=True))


def roads(opcode: str, count: int) -> tuple[Quick | None, Callable[..., Any]]:
    """The short road and the definition of an opcode with some operands."""
    found = OPCODES.find(tuple(opcode.split(".")), 1 + count)
    assert found.opcode is not None, found.problem
    what = value(found, 1 + count)
    return short_road(what), definition(what)


def quick(opcode: str, count: int) -> Callable[..., Any]:
    short, _ = roads(opcode, count)
    assert short is not None
    return short.function


def _difference(a: Any, b: Any) -> Any:
    return sum_odd(a, -b)


def _fused(a: Any, b: Any, c: Any) -> Any:
    return sum_odd(a * b, c)


CORES: dict[str, Callable[..., Any]] = {
    "add": sum_odd,
    "sub": _difference,
    "mul": np.multiply,
    "fma": _fused,
    "mad": _fused,
    "div": quotient_odd,
    "sqrt": root_odd,
}


def general(name: str, form: str, ftz: bool) -> Callable[..., Any]:
    """By f64 rounded to odd, whatever numpy has of its own."""
    shape = FORMATS[form]

    def function(*bits: Bits) -> Bits:
        given = [flush(x, form) if ftz else x for x in bits]
        value = CORES[name](*[decode(x, shape) for x in given])
        found = encode(quantize(value, shape), shape).astype(UNSIGNED[form])
        return flush(found, form) if ftz else found

    return function


ARITHMETIC = [
    *((name, form, 2, ()) for name in ("add", "sub", "mul") for form in FORMS),
    *(("fma", form, 3, ()) for form in FORMS),
    ("mad", "f32", 3, ()),
    ("div", "f32", 2, ()),
    ("sqrt", "f32", 1, ()),
    ("add", "f32", 2, ("ftz",)),
    ("mul", "f32", 2, ("ftz",)),
    ("fma", "f32", 3, ("ftz",)),
]


@pytest.mark.parametrize(("name", "form", "count", "words"), ARITHMETIC)
def test_arithmetic(name: str, form: str, count: int, words: tuple[str, ...]) -> None:
    short = quick(".".join((name, "rn", *words, form)), count)
    rows = operands(form, count, seed=len(name) + count)
    same(short, general(name, form, "ftz" in words), rows, TYPES[form])


@pytest.mark.parametrize("form", FORMS)
def test_fused_by_rationals(form: str) -> None:
    """Neither road: the exact sum, and the format's numbers on both sides of it."""
    short = quick(f"fma.rn.{form}", 3)
    shape = FORMATS[form]
    rows = [row[:20] for row in operands(form, 3, seed=9)]
    with np.errstate(all="ignore"):
        values = [decode(row, shape) for row in rows]
        found = np.asarray(short(*[row.view(TYPES[form]) for row in rows]))
        results = decode(found.view(UNSIGNED[form]), shape)
    seen = 0
    for a, b, c, result in zip(*(v.ravel() for v in (*values, results)), strict=True):
        if not all(np.isfinite((a, b, c, result))):
            continue
        exact = Fraction(a) * Fraction(b) + Fraction(c)
        error = abs(Fraction(result) - exact)
        unit = Fraction(2) ** (max(exponent_of(exact), shape.lowest) - shape.fraction)
        assert error <= unit / 2
        if error == unit / 2:
            assert (abs(Fraction(result)) / unit) % 2 == 0
        seen += 1
    assert seen > 300


def exponent_of(exact: Fraction) -> int:
    """The exponent of a number's highest bit, something small of zero."""
    if not exact:
        return -10_000
    magnitude = abs(exact)
    exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    return exponent - 1 if magnitude < Fraction(2) ** exponent else exponent


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ["max", "min"])
@pytest.mark.parametrize("words", [(), ("NaN",), ("ftz",)])
@pytest.mark.parametrize("count", [2, 3])
def test_extremes(name: str, form: str, words: tuple[str, ...], count: int) -> None:
    if form != "f32" and (count == 3 or (form == "bf16" and "ftz" in words)):
        return  # there is none such
    short, long = roads(".".join((name, *words, form)), count)
    if short is None:
        assert "ftz" in words
        assert form != "f32"
        return
    same(short.function, long, operands(form, count, seed=count), TYPES[form])


@pytest.mark.parametrize(
    ("opcode", "count"),
    [
        *((f"{n}.approx.f32", 1) for n in ("ex2", "lg2", "rsqrt", "sin", "tanh", "rcp")),
        *((f"{n}.approx.f16", 1) for n in ("ex2", "tanh")),
        ("ex2.approx.ftz.f32", 1),
        ("div.approx.f32", 2),
        ("div.full.f32", 2),
        ("div.full.ftz.f32", 2),
    ],
)
def test_approximations(opcode: str, count: int) -> None:
    """The same f64 value; what it becomes in the format is what is compared."""
    short, long = roads(opcode, count)
    assert short is not None
    form = opcode.split(".")[-1]
    same(short.function, long, operands(form, count, seed=5), TYPES[form])


@pytest.mark.parametrize(
    "opcode", ["ex2.approx.ftz.bf16", "tanh.approx.bf16", "rcp.approx.ftz.f64"]
)
def test_other_approximations_go_the_long_way(opcode: str) -> None:
    assert roads(opcode, 1)[0] is None


@pytest.mark.parametrize(
    ("into", "kind", "words"),
    [
        ("f16", "f32", ("rn",)),
        ("bf16", "f32", ("rn",)),
        ("f32", "f16", ()),
        ("f32", "bf16", ()),
        ("f16", "f32", ("rn", "ftz")),
        ("bf16", "f32", ("rn", "ftz")),
        ("f32", "bf16", ("ftz",)),
    ],
)
def test_between_floats(into: str, kind: str, words: tuple[str, ...]) -> None:
    short, long = roads(".".join(("cvt", *words, into, kind)), 1)
    assert short is not None
    rows = operands(kind, 1, seed=3)
    if kind != "f32":
        rows = [np.arange(1 << 16, dtype=np.uint16).reshape(-1, 32)]
    same(short.function, long, rows, TYPES[kind])


@pytest.mark.parametrize("into", FORMS)
@pytest.mark.parametrize("kind", ["u8", "s8", "u16", "s16", "u32", "s32"])
def test_of_integers(into: str, kind: str) -> None:
    short, long = roads(f"cvt.rn.{into}.{kind}", 1)
    assert short is not None
    dtype = np.dtype(f"{'i' if kind[0] == 's' else 'u'}{int(kind[1:]) // 8}")
    rng = np.random.default_rng(2)
    low, high = range_of(kind)
    values = rng.integers(low, high + 1, COUNT // 32 * 32) >> rng.integers(0, 24, COUNT // 32 * 32)
    ends = [low, low + 1, high, high - 1, 0, 1, *(min(2**n + 1, high) for n in range(26))]
    row = np.concatenate([values, ends]).astype(dtype).reshape(-1, 32)
    same(short.function, long, [row], dtype)


@pytest.mark.parametrize("into", ["u8", "s8", "u16", "s16", "u32", "s32"])
@pytest.mark.parametrize("kind", FORMS)
@pytest.mark.parametrize("rounding", ["rni", "rzi", "rmi", "rpi"])
def test_to_integers(into: str, kind: str, rounding: str) -> None:
    low, high = range_of(into)
    short, long = roads(f"cvt.{rounding}.{into}.{kind}", 1)
    assert short is not None
    rng = np.random.default_rng(4)
    shape = FORMATS[kind]
    around = rng.uniform(low - 3, high + 3, COUNT // 64 * 32).round(1)
    with np.errstate(all="ignore"):
        numbers = encode(quantize(around, shape), shape).astype(UNSIGNED[kind])
    (row,) = operands(kind, 1, seed=6)
    row = np.concatenate([row.ravel(), numbers]).reshape(-1, 32)
    same(short.function, long, [row], TYPES[kind])


@pytest.mark.parametrize("into", ["f16x2", "bf16x2"])
def test_pairs(into: str) -> None:
    """Two f32 in one register: each half on its own."""
    short = pair_of_singles(into, ("cvt", "rn"))
    assert short is not None
    form = FORMATS[into.removesuffix("x2")]

    def long(high: Bits, low: Bits) -> Bits:
        upper, lower = (
            narrowed_bits(decode(x, FORMATS["f32"]), form, "rn", ("rn",)).astype(np.uint32)
            for x in (high, low)
        )
        return upper << np.uint32(16) | lower

    same(short, long, operands("f32", 2, seed=8), np.float32)


@pytest.mark.parametrize("words", [("rn", "relu"), ("rn", "satfinite"), ("rz",)])
def test_other_pairs_go_the_long_way(words: tuple[str, ...]) -> None:
    assert pair_of_singles("f16x2", words) is None


@pytest.mark.parametrize(
    ("opcode", "count"),
    [
        ("fma.rn.sat.f16", 3),
        ("fma.rn.relu.f16", 3),
        ("fma.rn.oob.f16", 3),
        ("add.rz.f32", 2),
        ("max.xorsign.abs.f32", 2),
    ],
)
def test_other_forms_go_the_long_way(opcode: str, count: int) -> None:
    assert roads(opcode, count)[0] is None
