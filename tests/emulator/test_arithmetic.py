"""The tensor cores' arithmetic against a model in exact rationals, and crafted vectors.

The model below is written from the description in docs/arithmetic.md and shares no code with the
emulator: elements are decoded from their definition, sums are exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fragir.emulator.tensor_cores.arithmetic import (
    Architecture,
    Fused,
    Rounding,
    fused_parameters,
    target,
)
from fragir.emulator.tensor_cores.fused import decode, dot
from fragir.errors import FragirError

Bits: TypeAlias = npt.NDArray[np.uint32]
Value: TypeAlias = Fraction | str  # "nan", "+inf", "-inf"

# name: (exponent bits, fraction bits, has Inf, has NaN)
FORMATS = {
    "f32": (8, 23, True, True),
    "tf32": (8, 10, True, True),
    "bf16": (8, 7, True, True),
    "f16": (5, 10, True, True),
    "e5m2": (5, 2, True, True),
    "e4m3": (4, 3, False, True),
    "e3m2": (3, 2, False, False),
    "e2m3": (2, 3, False, False),
    "e2m1": (2, 1, False, False),
}


@dataclass(frozen=True)
class Number:
    value: Value
    exponent: int
    negative: bool


def read(name: str, code: int) -> Number:
    """A code's value and the exponent of its encoding; tf32 in the top of 32 bits."""
    exponent_bits, fraction_bits, has_inf, has_nan = FORMATS[name]
    if name == "tf32":
        code >>= 13
    bias = 2 ** (exponent_bits - 1) - 1
    negative = bool(code >> (exponent_bits + fraction_bits) & 1)
    field = code >> fraction_bits & (2**exponent_bits - 1)
    fraction = code & (2**fraction_bits - 1)
    if field == 2**exponent_bits - 1:
        if has_inf:
            value = ("-inf" if negative else "+inf") if fraction == 0 else "nan"
            return Number(value, 0, negative)
        if has_nan and fraction == 2**fraction_bits - 1:
            return Number("nan", 0, negative)
    exponent = max(field, 1) - bias
    significand = Fraction(fraction, 2**fraction_bits) + (1 if field else 0)
    value = significand * Fraction(2) ** exponent
    return Number(-value if negative else value, exponent, negative)


def towards_zero(x: Fraction) -> int:
    return int(x)  # int() of a Fraction truncates


def write(value: Value, rounding: str) -> int:
    """The result's bits from the exact sum."""
    half = rounding == "RNE-f16"
    if isinstance(value, str):
        if value == "nan":
            return 0x7FFF if half else 0x7FFFFFFF
        infinity = 0x7C00 if half else 0x7F800000
        return infinity | ((0x8000 if half else 1 << 31) if value == "-inf" else 0)
    bits = {"RNE-f16": 10, "RZ-f32": 23, "RZ-E8M13": 13}[rounding]
    least, bias, top = (-14, 15, 31) if half else (-126, 127, 255)
    magnitude = abs(value)
    exponent = least
    while magnitude >= Fraction(2) ** (exponent + 1):
        exponent += 1
    scaled = magnitude / Fraction(2) ** (exponent - bits)
    number = round(scaled) if half else towards_zero(scaled)  # round() is to nearest even
    if number == 0:
        return 0
    if number >= 2 ** (bits + 1):  # rounded up into the next binade
        number, exponent = number // 2, exponent + 1
    field = exponent + bias if number >= 2**bits else 0
    if field >= top:
        return write("-inf" if value < 0 else "+inf", rounding)
    fraction = (number - (2**bits if field else 0)) << ((10 if half else 23) - bits)
    code = field << (10 if half else 23) | fraction
    return code | ((0x8000 if half else 1 << 31) if value < 0 else 0)


def step(pairs: list[tuple[Number, Number]], c: Number, f: int, floor: int, rounding: str) -> int:
    """One fused step: alignment, truncation of each term, exact sum, one rounding."""
    infinities: set[str] = set()
    terms: list[tuple[Fraction, int]] = []
    for a, b in pairs:
        special = [x for x in (a, b) if isinstance(x.value, str)]
        if special:
            other = b if special[0] is a else a
            if any(x.value == "nan" for x in (a, b)) or other.value == 0:
                return write("nan", rounding)
            infinities.add("-inf" if a.negative != b.negative else "+inf")
            continue
        assert isinstance(a.value, Fraction)
        assert isinstance(b.value, Fraction)
        terms.append((a.value * b.value, a.exponent + b.exponent))
    if c.value == "nan":
        return write("nan", rounding)
    if isinstance(c.value, str):
        infinities.add(c.value)
    else:
        terms.append((c.value, c.exponent))
    if infinities:
        return write(infinities.pop() if len(infinities) == 1 else "nan", rounding)
    leading = max([floor, *(e for value, e in terms if value != 0)])
    unit = Fraction(2) ** (leading - f)
    total = sum(towards_zero(value / unit) for value, _ in terms)
    return write(total * unit, rounding)


def chain(name: tuple[str, str], a: list[int], b: list[int], c: int, how: Fused) -> int:
    rounding = {
        Rounding.RZ_F32: "RZ-f32",
        Rounding.RZ_E8M13: "RZ-E8M13",
        Rounding.RNE_F16: "RNE-f16",
    }[how.rounding]
    for start in range(0, len(a), how.step):
        part = slice(start, start + how.step)
        pairs = [
            (read(name[0], x), read(name[1], y)) for x, y in zip(a[part], b[part], strict=True)
        ]
        addend = read("f16" if rounding == "RNE-f16" else "f32", c)
        c = step(pairs, addend, how.fraction, how.floor, rounding)
    return c


def width(name: str) -> int:
    return 32 if name == "tf32" else 1 + sum(FORMATS[name][:2])


def codes(name: str, shape: tuple[int, ...], kind: str, rng: np.random.Generator) -> Bits:
    bits = width(name)
    raw = rng.integers(0, 1 << bits, shape, dtype=np.uint64).astype(np.uint32)
    exponent_bits, fraction_bits, *_ = FORMATS[name]
    place = 23 if name == "tf32" else fraction_bits
    middle = 1 << (exponent_bits - 1)
    keep = np.uint32(~(((1 << exponent_bits) - 1) << place) & 0xFFFFFFFF)
    match kind:
        case "raw":
            return raw
        case "near":  # exponents close together: many terms overlap and cancel
            field = rng.integers(middle - 2, middle + 1, shape).astype(np.uint32)
            return (raw & keep) | (field << np.uint32(place))
        case "empty":  # nearly all outputs have zeros alone, or those and an addend
            return np.where(rng.random(shape[-1:]) < 0.9, raw & np.uint32(1 << (bits - 1)), raw)
        case "zeros":
            return np.where(rng.random(shape) < 0.7, raw & np.uint32(1 << (bits - 1)), raw)
        case _:  # subnormals and the smallest normals
            return (raw & keep) | (rng.integers(0, 2, shape).astype(np.uint32) << np.uint32(place))


# architecture, element, accumulator, F, e_floor, step, rounding: typed from the literature, as a
# check on the table that the emulator computes with.
ROWS = [
    ("sm_70", "f16", "f32", 23, -131, 4, Rounding.RZ_F32),
    ("sm_70", "f16", "f16", 23, -19, 4, Rounding.RNE_F16),
    ("sm_75", "f16", "f32", 24, -132, 8, Rounding.RZ_F32),
    ("sm_75", "f16", "f16", 24, -20, 8, Rounding.RNE_F16),
    ("sm_80", "f16", "f32", 24, -132, 8, Rounding.RZ_F32),
    ("sm_80", "f16", "f16", 24, -20, 8, Rounding.RNE_F16),
    ("sm_86", "bf16", "f32", 24, -132, 8, Rounding.RZ_F32),
    ("sm_87", "tf32", "f32", 24, -132, 4, Rounding.RZ_F32),
    ("sm_89", "e4m3", "f32", 13, -132, 16, Rounding.RZ_E8M13),
    ("sm_89", "e5m2", "f16", 13, -20, 16, Rounding.RNE_F16),
    ("sm_90a", "f16", "f32", 25, -133, 16, Rounding.RZ_F32),
    ("sm_90", "f16", "f16", 25, -21, 16, Rounding.RNE_F16),
    ("sm_90", "bf16", "f32", 25, -133, 16, Rounding.RZ_F32),
    ("sm_90", "tf32", "f32", 25, -133, 8, Rounding.RZ_F32),
    ("sm_90a", "e4m3", "f32", 13, -133, 32, Rounding.RZ_E8M13),
    ("sm_90a", "e5m2", "f16", 13, -21, 32, Rounding.RNE_F16),
    ("sm_100a", "f16", "f32", 25, -133, 16, Rounding.RZ_F32),
    ("sm_120a", "e4m3", "f32", 25, -133, 32, Rounding.RZ_F32),
    ("sm_120a", "e2m1", "f16", 25, -21, 32, Rounding.RNE_F16),
    ("sm_121a", "e3m2", "f32", 25, -133, 32, Rounding.RZ_F32),
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: "-".join(row[:3]))
def test_parameters(row: tuple[str, str, str, int, int, int, Rounding]) -> None:
    name, element, accumulator, *rest = row
    how = fused_parameters(target(name).architecture, element, accumulator)
    assert [how.fraction, how.floor, how.step, how.rounding] == rest


@pytest.mark.parametrize("kind", ["raw", "near", "empty", "zeros", "tiny"])
@pytest.mark.parametrize("row", ROWS, ids=lambda row: "-".join(row[:3]))
def test_random_vectors(row: tuple[str, str, str, int, int, int, Rounding], kind: str) -> None:
    name, element, accumulator, *_ = row
    how = fused_parameters(target(name).architecture, element, accumulator)
    rng = np.random.default_rng(sum(map(ord, name + element + accumulator + kind)))
    count, depth = 60, how.step * (2 if how.step < 16 else 1)
    a, b = (codes(element, (depth, count), kind, rng) for _ in range(2))
    c = codes(accumulator, (count,), kind, rng)
    # Exponents of the addend near those of the products, where it matters.
    if kind in ("near", "empty") and accumulator == "f32":
        field = rng.integers(120, 132, count).astype(np.uint32)
        near = (c & np.uint32(0x807FFFFF)) | (field << np.uint32(23))
        c = near if kind == "near" else np.where(c << np.uint32(1) == 0, c, near)
    result = dot(decode(element, a), decode(element, b), c, how)
    expected = [
        chain((element, element), a[:, j].tolist(), b[:, j].tolist(), int(c[j]), how)
        for j in range(count)
    ]
    assert result.tolist() == expected


@pytest.mark.parametrize("pair", [("e4m3", "e5m2"), ("e5m2", "e2m1"), ("e3m2", "e2m3")])
def test_mixed_elements(pair: tuple[str, str]) -> None:
    how = fused_parameters(Architecture.RTX_BLACKWELL, "e4m3", "f32")
    rng = np.random.default_rng(5)
    a, b = codes(pair[0], (32, 50), "raw", rng), codes(pair[1], (32, 50), "raw", rng)
    c = codes("f32", (50,), "zeros", rng)
    result = dot(decode(pair[0], a), decode(pair[1], b), c, how)
    expected = [chain(pair, a[:, j].tolist(), b[:, j].tolist(), int(c[j]), how) for j in range(50)]
    assert result.tolist() == expected


CASES = st.sampled_from([(row[0], row[1], row[2]) for row in ROWS])


@settings(max_examples=150, deadline=None)
@given(CASES, st.data())
def test_any_vector(case: tuple[str, str, str], data: st.DataObject) -> None:
    """Hypothesis looks for one output that differs; shrinking gives the smallest."""
    name, element, accumulator = case
    how = fused_parameters(target(name).architecture, element, accumulator)
    code = st.integers(0, 2 ** width(element) - 1)
    vector = st.lists(code, min_size=how.step, max_size=how.step)
    a, b = data.draw(vector), data.draw(vector)
    c = data.draw(st.integers(0, 2 ** (16 if accumulator == "f16" else 32) - 1))
    column_a, column_b = (np.array(x, np.uint32)[:, None] for x in (a, b))
    result = dot(
        decode(element, column_a), decode(element, column_b), np.array([c], np.uint32), how
    )
    assert int(result[0]) == chain((element, element), a, b, c, how)


HOPPER = Architecture.HOPPER


def run(
    how: Fused, element: str, products: list[tuple[float, float]], c: float, *, fill: float = 0.0
) -> float:
    """One output of a chain; missing products are `fill * 0`."""
    depth = -(-max(len(products), 1) // how.step) * how.step
    products = products + [(fill, 0.0)] * (depth - len(products))

    def encode(values: list[float]) -> Bits:
        if element == "f16":
            return np.array(values, np.float16).view(np.uint16).astype(np.uint32)[:, None]
        bits = np.array(values, np.float32).view(np.uint32)
        return (bits >> np.uint32(16) if element == "bf16" else bits)[:, None]

    half = how.rounding is Rounding.RNE_F16
    addend = np.array([c], np.float16).view(np.uint16) if half else np.array([c], np.float32)
    bits = addend.astype(np.uint32) if half else addend.view(np.uint32)
    a, b = (decode(element, encode([pair[side] for pair in products])) for side in (0, 1))
    result = dot(a, b, bits, how)
    return float(
        result.astype(np.uint16).view(np.float16)[0] if half else result.view(np.float32)[0]
    )


def halves(*values: float) -> list[tuple[float, float]]:
    """Products equal to `values`, powers of two split so that f16 holds both factors."""
    result: list[tuple[float, float]] = []
    for value in values:
        small = 2.0**-13 if 0 < abs(value) < 2.0**-14 else 1.0
        result.append((value / small, small))
    return result


F32, F16 = fused_parameters(HOPPER, "f16", "f32"), fused_parameters(HOPPER, "f16", "f16")


class TestCraftedVectors:
    """What the model predicts on Hopper where other models would say otherwise."""

    def test_fraction_bits_under_f16_results(self) -> None:
        """F = 25: with 1 and 2^-11 (a tie) a term of 2^-25 still rounds up, 2^-26 does not."""
        up = 1 + 2.0**-10
        assert run(F16, "f16", halves(1.0, 2.0**-11, 2.0**-25), 0) == up
        assert run(F16, "f16", halves(1.0, 2.0**-11, 2.0**-26), 0) == 1.0
        assert run(F16, "f16", halves(1.0, 2.0**-11, 2.0**-24), 0) == up

    def test_truncation_is_of_magnitudes(self) -> None:
        """A negative term below the last place vanishes; flooring would subtract one unit."""
        assert run(F32, "f16", halves(1.0, -(2.0**-26)), 0) == 1.0
        assert run(F16, "f16", halves(1.0, 3 * 2.0**-11, -(2.0**-26)), 0) == 1 + 2.0**-9

    def test_last_place_kept_in_f32(self) -> None:
        tail = [2.0**-25, 2.0**-25, 2.0**-25, 2.0**-25]
        assert run(F32, "f16", halves(1.0, *tail), 0) == 1 + 2.0**-23
        assert run(F32, "f16", halves(1.0, *(x / 2 for x in tail)), 0) == 1.0

    def test_products_are_not_normalised(self) -> None:
        """1.5*1.5 = 2.25 counts with exponent 0, so 2^-25 beside it survives the cancellation."""
        products = [(1.5, 1.5), (-1.5, 1.5), *halves(2.0**-25)]
        assert run(F32, "f16", products, 0) == 2.0**-25

    def test_zero_products_take_no_part(self) -> None:
        how = fused_parameters(HOPPER, "bf16", "f32")
        assert run(how, "bf16", [(0.0, 2.0**127)], 2.0**-30) == 2.0**-30

    def test_addend_is_a_term_like_any_other(self) -> None:
        assert run(F32, "f16", halves(2.0**-2), 2.0**24) == 2.0**24
        assert run(F32, "f16", halves(2.0**-2, -(2.0**10)), 2.0**24) == 2.0**24 - 2.0**10

    def test_order_within_a_step_is_irrelevant(self) -> None:
        values = [2.0**10, 2.0**-10, -(2.0**10), 3.0, 2.0**-12, 5.0]
        assert run(F32, "f16", halves(*values), 1.0) == run(F32, "f16", halves(*values[::-1]), 1.0)

    def test_step_of_sixteen_on_hopper_and_eight_on_ampere(self) -> None:
        """+M and -M cancel only within one step; a step of 8 has lost the small terms by then."""
        products = halves(2.0**12, *[2.0**-14] * 7, -(2.0**12), *[2.0**-14] * 7)
        assert run(F32, "f16", products, 0) == 0.0
        ampere = fused_parameters(Architecture.AMPERE, "f16", "f32")
        assert run(ampere, "f16", products, 0) == 0.0
        products = halves(*[2.0**-13] * 8, 2.0**12, -(2.0**12))
        assert run(F32, "f16", products, 0) == 2.0**-10
        products = halves(2.0**13, -(2.0**13), *[2.0**-13] * 6, *[2.0**-13] * 8)
        assert run(F32, "f16", products, 0) == 0.0
        assert run(ampere, "f16", products, 0) == 2.0**-10

    def test_zero_is_positive(self) -> None:
        negative = [(-0.0, 1.0)] * 16
        assert np.signbit(run(F32, "f16", negative, -0.0)) == np.False_
        assert np.signbit(run(F16, "f16", negative, -0.0)) == np.False_

    def test_underflow_to_zero_is_positive(self) -> None:
        result = run(F16, "f16", [(-(2.0**-13), 2.0**-13)], 0)
        assert result == 0
        assert not np.signbit(result)
        how = fused_parameters(HOPPER, "bf16", "f32")
        result = run(how, "bf16", [(-(2.0**-75), 2.0**-75)], 0)
        assert result == 0
        assert not np.signbit(result)

    def test_floor_of_the_exponents(self) -> None:
        how = fused_parameters(HOPPER, "bf16", "f32")
        tiny = [(2.0**-75, 2.0**-74)]  # 2^-149
        assert run(how, "bf16", [*tiny, (-(2.0**-79), 2.0**-79)], 0) == 0.0
        assert run(how, "bf16", [*tiny, (-(2.0**-80), 2.0**-79)], 0) == 2.0**-149

    def test_subnormals_are_kept(self) -> None:
        assert run(F32, "f16", [], 2.0**-149) == 2.0**-149
        assert run(F32, "f16", [(2.0**-24, 1.0)], 0) == 2.0**-24

    def test_overflow_is_infinite_although_towards_zero(self) -> None:
        how = fused_parameters(HOPPER, "bf16", "f32")
        top = float(np.finfo(np.float32).max)
        assert run(how, "bf16", [(2.0**127, 1.0)], 2.0**127) == np.inf
        assert run(how, "bf16", [(2.0**100, 1.0)], top) == top
        huge = [(2.0**127, 2.0**127), (-(2.0**127), 2.0**127)]  # products do not overflow
        assert run(how, "bf16", huge, 1.0) == 0.0
        assert run(F16, "f16", [(65504.0, 1.0), (15.0, 1.0)], 0) == 65504
        assert run(F16, "f16", [(65504.0, 1.0), (16.0, 1.0)], 0) == np.inf

    def test_tf32_ignores_the_low_bits(self) -> None:
        how = fused_parameters(HOPPER, "tf32", "f32")
        one = np.array([[0x3F800000]] + [[0]] * 7, np.uint32)
        zero = np.zeros(1, np.uint32)
        for code, expected in ((0x3F801FFF, 0x3F800000), (0x7F800001, 0x7F800000), (0x1FFF, 0)):
            a = np.array([[code]] + [[0]] * 7, np.uint32)
            assert int(dot(decode("tf32", a), decode("tf32", one), zero, how)[0]) == expected

    def test_fp8_of_hopper_cuts_the_addend(self) -> None:
        how = fused_parameters(HOPPER, "e4m3", "f32")
        none = decode("e4m3", np.zeros((32, 1), np.uint32))
        result = dot(none, none, np.array([0x3FFFFFFF], np.uint32), how)
        assert int(result[0]) == 0x3FFFFC00

    def test_32_large_products_do_not_wrap(self) -> None:
        """32 * 1.875^2 in units of 2^-25 exceeds 32 bits."""
        how = fused_parameters(Architecture.RTX_BLACKWELL, "e4m3", "f32")
        ones = decode("e4m3", np.full((32, 1), 0x3F, np.uint32))
        result = dot(ones, ones, np.zeros(1, np.uint32), how)
        assert float(result.view(np.float32)[0]) == 112.5

    def test_sums_beyond_32_bits(self) -> None:
        """Sixteen products just below 2^(F+2) fit in an int32, but not with the addend."""
        most = 2 - 2.0**-10
        for sign in (1, -1):
            result = run(F32, "f16", [(sign * most, most)] * 16, sign * 1.5)
            assert result == sign * (65.4375 + 2.0**-16)

    @pytest.mark.parametrize("code", [0x7FC00000, 0xFF800001, 0x7F800001])
    def test_nan_is_canonical(self, code: int) -> None:
        none = decode("f16", np.zeros((16, 1), np.uint32))
        assert int(dot(none, none, np.array([code], np.uint32), F32)[0]) == 0x7FFFFFFF

    def test_infinity_times_zero_and_opposite_infinities(self) -> None:
        assert np.isnan(run(F32, "f16", [(np.inf, 0.0)], 0))
        assert np.isnan(run(F32, "f16", [(np.inf, 1.0), (-np.inf, 1.0)], 0))
        assert np.isnan(run(F32, "f16", [(np.inf, 1.0)], -np.inf))
        assert run(F32, "f16", [(np.inf, -1.0), (3.0, 1.0)], 7.0) == -np.inf
        assert run(F16, "f16", [(np.inf, -1.0), (3.0, 1.0)], 7.0) == -np.inf


def test_targets() -> None:
    assert target("sm_90a").architecture is HOPPER
    assert (target("sm_120f").number, target("sm_120f").suffix) == (120, "f")
    for name in ("sm_61", "sm_90x", "compute_90", "sm_130"):
        with pytest.raises(FragirError, match="knows no tensor cores"):
            target(name)


def test_elements_without_hardware() -> None:
    with pytest.raises(FragirError, match="Ampere do not multiply `e4m3`"):
        fused_parameters(Architecture.AMPERE, "e4m3", "f32")
    with pytest.raises(FragirError, match="Turing do not multiply `bf16`"):
        fused_parameters(Architecture.TURING, "bf16", "f32")
