"""Number formats against ml_dtypes, numpy and exact rational arithmetic."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from fragir.errors import FragirError
from fragir.reference.formats import (
    FLOATS,
    INTEGERS,
    decode,
    encode,
    half_spacing,
    overflow,
    round_to,
    storage,
)

OTHERS: dict[str, Any] = {
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "e4m3": ml_dtypes.float8_e4m3fn,
    "e5m2": ml_dtypes.float8_e5m2,
}


def every_pattern(name: str) -> Any:
    bits = storage(name).itemsize * 8
    return np.arange(1 << bits, dtype=f"uint{bits}")


@pytest.mark.parametrize("name", OTHERS)
def test_every_bit_pattern(name: str) -> None:
    codes = every_pattern(name)
    with np.errstate(invalid="ignore"):
        expected = codes.view(OTHERS[name]).astype(np.float64)
    values = decode(codes.view(storage(name)), name)
    assert np.array_equal(values, expected, equal_nan=True)
    assert np.array_equal(
        np.signbit(values[~np.isnan(values)]), np.signbit(expected[~np.isnan(expected)])
    )
    back = encode(values, name).view(codes.dtype)
    usable = np.isfinite(expected)
    assert np.array_equal(back[usable], codes[usable])


def nearest_even(x: float, precision: int, lowest: int) -> Fraction:
    """Rounding to nearest even in exact arithmetic, without an upper limit."""
    exact = abs(Fraction(x))
    if exact == 0:
        return Fraction(0)
    exponent = lowest
    while exact >= Fraction(2) ** (exponent + 1):
        exponent += 1
    unit = Fraction(2) ** (exponent - precision + 1)
    whole, rest = divmod(exact, unit)
    up = rest > unit / 2 or (rest == unit / 2 and whole % 2 == 1)
    rounded = (whole + up) * unit
    return rounded if x > 0 else -rounded


def samples(name: str, seed: int = 0) -> Any:
    """Numbers of all sizes, midpoints among them."""
    generator = np.random.default_rng(seed)
    form = FLOATS[name]
    wide = generator.standard_normal(300) * 2.0 ** generator.integers(
        form.lowest - form.precision - 1, min(12, int(np.log2(form.largest)) - 3), 300
    )
    near = round_to(wide[:100], form)
    return np.concatenate([wide, near, near + half_spacing(np.abs(near), form), [0.0]])


@pytest.mark.parametrize("name", ["f16", "bf16", "f32", "e4m3", "e5m2"])
def test_rounding_is_to_nearest_even(name: str) -> None:
    form = FLOATS[name]
    for x, rounded in zip(samples(name), round_to(samples(name), form), strict=True):
        assert Fraction(float(rounded)) == nearest_even(float(x), form.precision, form.lowest)


def test_tf32_rounds_ties_away() -> None:
    form = FLOATS["tf32"]
    ties = np.array([1 + 2.0**-11, 1 + 3 * 2.0**-11, -(1 + 2.0**-11)])
    assert round_to(ties, form).tolist() == [1 + 2.0**-10, 1 + 2 * 2.0**-10, -(1 + 2.0**-10)]


def test_low_bits_of_a_tf32_array_do_not_count() -> None:
    bits = np.array([0x3F801FFF, 0x3F802000], np.uint32)
    assert decode(bits.view(np.float32), "tf32").tolist() == [1.0, 1 + 2.0**-10]


@pytest.mark.parametrize("name", ["f16", "bf16", "f32"])
def test_overflow(name: str) -> None:
    form = FLOATS[name]
    limit = overflow(form)
    values = np.array([np.nextafter(limit, 0), limit, -limit, np.inf, np.nan])
    assert np.array_equal(
        round_to(values, form), [form.largest, np.inf, -np.inf, np.inf, np.nan], equal_nan=True
    )


@pytest.mark.parametrize("name", ["e4m3", "e5m2"])
def test_eight_bit_floats_saturate(name: str) -> None:
    values = np.array([1e9, -1e9, np.inf, np.nan])
    largest = FLOATS[name].largest
    assert np.array_equal(
        round_to(values, FLOATS[name]), [largest, -largest, largest, np.nan], equal_nan=True
    )


@pytest.mark.parametrize("name", FLOATS)
def test_half_spacing_bounds_rounding(name: str) -> None:
    form, values = FLOATS[name], samples(name)
    if name == "ue8m0":  # has no sign and no zero
        values = np.maximum(np.abs(values), form.smallest)
    moved = np.abs(round_to(values, form) - values)
    assert (moved <= half_spacing(np.abs(values), form)).all()


def test_integers_wrap() -> None:
    values = np.array([0, 127, 128, 255, 256, -1, -129])
    assert INTEGERS["s8"].wrap(values).tolist() == [0, 127, -128, -1, 0, -1, 127]
    assert INTEGERS["u8"].wrap(values).tolist() == [0, 127, 128, 255, 0, 255, 127]
    assert encode(values, "s8").tolist() == [0, 127, -128, -1, 0, -1, 127]


def test_an_array_of_another_width_is_refused() -> None:
    with pytest.raises(FragirError, match="cannot hold f16"):
        decode(np.zeros(3, np.float32), "f16")


@pytest.mark.parametrize("name", ["s4", "u4", "e2m1x2"])
def test_arrays_without_rows_of_elements_that_share_a_byte(name: str) -> None:
    packed = encode(np.zeros((0, 32)), name)
    assert packed.shape == (0, 16)
    assert decode(packed, name).shape == (0, 32)
    assert decode(np.zeros((3, 0), np.uint8), name).shape == (3, 0)
