"""Arithmetic that is no tensor-core step: f64, integers, and what ptxas makes of other forms."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Literal

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fragir.emulator.numbers.ieee import fma_f32_of_f16, fma_f64
from fragir.emulator.tensor_cores import Mma, Settings, tensor_instruction
from fragir.emulator.tensor_cores.arithmetic import Architecture, fused_parameters
from fragir.emulator.tensor_cores.compute import integer_values
from fragir.emulator.tensor_cores.forms import BITS
from fragir.emulator.tensor_cores.fused import decode, dot, f16_codes

Rounding = Literal["rn", "rz", "rm", "rp"]


def mma(words: str, target: str, settings: Settings | None = None) -> Mma:
    op = tensor_instruction(("mma", "sync", "aligned", *words.split(".")), target, settings)
    assert isinstance(op, Mma)
    return op


def nearest(exact: Fraction, rounding: Rounding) -> float:
    """`exact` (not zero) as a double, by comparing it with its neighbours."""
    guess = float(exact)  # Fraction division rounds to nearest even
    below, above = guess, guess
    if Fraction(guess) > exact:
        below = float(np.nextafter(guess, -np.inf))
    elif Fraction(guess) < exact:
        above = float(np.nextafter(guess, np.inf))
    match rounding:
        case "rn":
            return guess
        case "rm":
            return below
        case "rp":
            return above
        case "rz":
            return below if exact > 0 else above


DOUBLES = st.floats(allow_nan=False, allow_infinity=False, min_value=-1e150, max_value=1e150)


@settings(max_examples=300, deadline=None)
@given(DOUBLES, DOUBLES, DOUBLES, st.sampled_from(["rn", "rz", "rm", "rp"]))
def test_fma_f64(a: float, b: float, c: float, rounding: Rounding) -> None:
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    result = float(fma_f64(np.array([a]), np.array([b]), np.array([c]), rounding)[0])
    if exact != 0:
        expected = nearest(exact, rounding)
        assert result == expected
    else:
        assert result == 0


@pytest.mark.parametrize("rounding", ["rn", "rz", "rm", "rp"])
def test_fma_f64_near_cancellation(rounding: Rounding) -> None:
    """c = -round(a*b): the result is the product's rounding error."""
    rng = np.random.default_rng(3)
    a, b = rng.standard_normal(500), rng.standard_normal(500)
    c = -(a * b) * np.where(rng.random(500) < 0.5, 1, 1 + 2.0**-52)
    result = fma_f64(a, b, c, rounding)
    for x, y, z, d in zip(a, b, c, result, strict=True):
        exact = Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z))
        assert exact == 0 or float(d) == nearest(exact, rounding)


def test_fma_f64_at_the_ends_of_the_range() -> None:
    top, least = np.finfo(np.float64).max, 2.0**-1074
    a = np.array([top, top, least, 2.0**-600, np.inf, np.inf, 0.0, -0.0, 1.0, 2.0**600])
    b = np.array([2.0, 2.0, 0.5, 2.0**-474, 0.0, 1.0, 5.0, 5.0, -1.0, 2.0**600])
    c = np.array([-top, 0.0, least, 0.0, 1.0, -np.inf, -0.0, -0.0, 1.0, -np.inf])
    result = fma_f64(a, b, c)
    expected = [top, np.inf, 2.0**-1073, 2.0**-1074, np.nan, np.nan, 0.0, -0.0, 0.0, -np.inf]
    np.testing.assert_array_equal(result, expected)
    assert np.signbit(result).tolist()[6:9] == [False, True, False]
    towards = [float(fma_f64(a[:2], b[:2], c[:2], "rz")[1]), float(fma_f64(a, b, c, "rm")[8])]
    assert towards[0] == top
    assert np.signbit(towards[1])


def sparse_significands(count: int, bits: int, rng: np.random.Generator) -> npt.NDArray[np.float64]:
    """Numbers with few ones, often at the end or the middle: what makes ties and near-ties."""
    value = np.ones(count)
    for place in (bits - 1, bits - 2, bits // 2, bits // 2 + 1, *rng.integers(1, bits, 2)):
        value += np.where(rng.random(count) < 0.4, 2.0**-place, 0.0)
    return value * rng.choice([-1.0, 1.0], count)


@pytest.mark.parametrize("rounding", ["rn", "rz", "rm", "rp"])
def test_fma_f64_of_near_ties(rounding: Rounding) -> None:
    """A tie of the first addition that a bit further down decides: two roundings would go wrong."""
    rng = np.random.default_rng(11)
    count = 3000
    a, b, c = (sparse_significands(count, 53, rng) for _ in range(3))
    c *= 2.0 ** rng.choice([-110, -106, -105, -54, -53, -52, 52, 53, 54, 105, 106], count)
    for x, y, z, d in zip(a, b, c, fma_f64(a, b, c, rounding), strict=True):
        exact = Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z))
        assert exact == 0 or float(d) == nearest(exact, rounding)


def test_fma_f32_rounds_once() -> None:
    rng = np.random.default_rng(0)
    count = 4000
    x, y = (sparse_significands(count, 11, rng).astype(np.float32) for _ in range(2))
    z = sparse_significands(count, 24, rng) * 2.0 ** rng.integers(-50, 50, count)
    z = z.astype(np.float32)
    for p, q, r, d in zip(x, y, z, fma_f32_of_f16(x, y, z), strict=True):
        exact = Fraction(float(p)) * Fraction(float(q)) + Fraction(float(r))
        error = abs(Fraction(float(d)) - exact)
        for side in (-np.inf, np.inf):
            assert error <= abs(Fraction(float(np.nextafter(d, np.float32(side)))) - exact)


def test_m8n8k4_software_order_of_additions() -> None:
    """(1 + 2^-24) - 1 in f32 is 0; adding the products first would leave 2^-24."""
    op = mma("m8n8k4.row.col.f16.f16.f16.f16", "sm_90a")
    a, b = np.zeros((4, 4, 8, 1), np.float16), np.ones((4, 4, 8, 1), np.float16)
    a[0], b[0], a[2] = 2.0**-12, 2.0**-12, -1
    c = np.full((4, 8, 8, 1), 0x3C00, np.uint32)
    left, right = (x.view(np.uint16).astype(np.uint32) for x in (a, b))
    assert not op.plan.compute(left, right, c, None, None).any()


@pytest.mark.parametrize("element", ["s8", "u8", "s4", "u4", "b1"])
def test_integer_elements(element: str) -> None:
    bits = BITS[element]
    values = integer_values(element, np.arange(1 << bits, dtype=np.uint32)).astype(int).tolist()
    half = 1 << (bits - 1)
    if element[0] == "s":
        assert values == [*range(half), *range(-half, 0)]
    else:
        assert values == list(range(1 << bits))


@pytest.mark.parametrize("clamp", [False, True])
def test_satfinite_clamps_once_at_the_end(clamp: bool) -> None:
    op = mma("m16n8k32.row.col." + "satfinite." * clamp + "s32.s8.s8.s32", "sm_80")
    a = np.zeros((32, 16, 1), np.uint32)
    b = np.zeros((32, 8, 1), np.uint32)
    a[0], a[1], b[:2] = 100, 256 - 100, 1  # +100 and -100
    top = np.full((16, 8, 1), 2**31 - 10, np.uint32)
    assert (op.plan.compute(a, b, top, None, None) == 2**31 - 10).all()
    a[1] = 0
    expected = 2**31 - 1 if clamp else 2**31 + 90
    assert (op.plan.compute(a, b, top, None, None) == expected).all()


def random_codes(shape: tuple[int, ...], seed: int, bits: int = 8) -> npt.NDArray[np.uint32]:
    return np.random.default_rng(seed).integers(0, 1 << bits, shape).astype(np.uint32)


FP8: dict[str, Any] = {"e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2}


@pytest.mark.parametrize("name", FP8)
def test_fp8_becomes_f16_exactly(name: str) -> None:
    codes = np.arange(256, dtype=np.uint8)
    with np.errstate(invalid="ignore"):
        expected = codes.view(FP8[name]).astype(np.float32)
    found = f16_codes(name).astype(np.uint16).view(np.float16).astype(np.float32)
    np.testing.assert_array_equal(found, expected)
    finite = ~np.isnan(expected)
    assert (np.signbit(found) == np.signbit(expected))[finite].all()


@pytest.mark.parametrize("target", ["sm_90", "sm_90a", "sm_100a", "sm_103a"])
@pytest.mark.parametrize("depth", [16, 32])
@pytest.mark.parametrize("accumulator", ["f32", "f16"])
def test_fp8_mma_is_two_half_precision_steps(target: str, depth: int, accumulator: str) -> None:
    op = mma(f"m16n8k{depth}.row.col.{accumulator}.e4m3.e5m2.{accumulator}", target)
    a, b = random_codes((depth, 16, 3), 1), random_codes((depth, 8, 3), 2)
    c = random_codes((16, 8, 3), 3, 16 if accumulator == "f16" else 32)
    found = op.plan.compute(a, b, c, None, None)
    left = decode("f16", f16_codes("e4m3")[a])[:, :, None]
    right = decode("f16", f16_codes("e5m2")[b])[:, None]
    how = fused_parameters(Architecture.HOPPER, "f16", accumulator)
    first = [k for k in range(depth) if k % 4 in (0, 1)]
    second = [k for k in range(depth) if k % 4 in (2, 3)]
    products = dot(left[first], right[first], np.zeros_like(c), how)
    products = dot(left[second], right[second], products, how)
    kind = np.float16 if accumulator == "f16" else np.float32
    unsigned = np.uint16 if accumulator == "f16" else np.uint32
    with np.errstate(invalid="ignore", over="ignore"):
        total = c.astype(unsigned).view(kind) + products.astype(unsigned).view(kind)
    bits = np.where(
        np.isnan(total), 0x7FFF if accumulator == "f16" else 0x7FFFFFFF, total.view(unsigned)
    )
    np.testing.assert_array_equal(found, bits)


def test_fp8_mma_depends_on_the_assembler() -> None:
    """2^16 in k%4 < 2 and 2^-8 + 2^-9 in the others: only separate products keep the small ones."""
    a, b = np.zeros((32, 16, 1), np.uint32), np.zeros((32, 8, 1), np.uint32)

    def put(k: int, x: float, y: float) -> None:
        for codes, value in ((a, x), (b, y)):
            codes[k] = int(np.array(value, FP8["e4m3"]).view(np.uint8))

    put(0, 256.0, 256.0)
    put(2, 2.0**-4, 2.0**-4)
    put(3, 2.0**-4, 2.0**-5)
    c = np.zeros((16, 8, 1), np.uint32)
    results: dict[tuple[int, int], float] = {}
    for version in ((12, 4), (13, 2)):
        op = mma("m16n8k32.row.col.f32.e4m3.e4m3.f32", "sm_90a", Settings(ptxas=version))
        bits = op.plan.compute(a, b, c, None, None).astype(np.uint32)
        results[version] = float(bits.view(np.float32)[0, 0, 0])
    assert results == {(13, 2): 2.0**16, (12, 4): 2.0**16 + 2.0**-7}


def test_fp8_is_native_on_ada_and_rtx_blackwell() -> None:
    a = np.zeros((32, 16, 1), np.uint32)
    b = np.zeros((32, 8, 1), np.uint32)
    c = np.full((16, 8, 1), 0x3FFFFFFF, np.uint32)
    expected = {"sm_89": 0x3FFFFC00, "sm_90a": 0x3FFFFFFF, "sm_120a": 0x3FFFFFFF}
    for target, bits in expected.items():
        op = mma("m16n8k32.row.col.f32.e4m3.e4m3.f32", target)
        assert (op.plan.compute(a, b, c, None, None) == bits).all()


@pytest.mark.parametrize("target", ["sm_80", "sm_89", "sm_90a", "sm_100a"])
@pytest.mark.parametrize("types", ["f32.f16.f16.f32", "f32.f16.f16.f16", "f16.f16.f16.f16"])
def test_m8n8k4_in_software(target: str, types: str) -> None:
    """Against scalar code in the order of the SASS, with exact rationals for the FMAs."""
    op = mma(f"m8n8k4.row.col.{types}", target)
    rng = np.random.default_rng(7)
    half_c, half_d = types.endswith("f16"), types.startswith("f16")
    a = rng.standard_normal((4, 4, 8, 1)).astype(np.float16)
    b = rng.standard_normal((4, 4, 8, 1)).astype(np.float16)
    c = rng.standard_normal((4, 8, 8, 1)).astype(np.float16 if half_c else np.float32)
    c_bits = c.view(np.uint16 if half_c else np.uint32).astype(np.uint32)
    found = op.plan.compute(
        a.view(np.uint16).astype(np.uint32), b.view(np.uint16).astype(np.uint32), c_bits, None, None
    )

    def single(x: Fraction) -> Fraction:
        """To f32: 24 bits around x, by numpy's rounding of an exact double if it is one."""
        scale = Fraction(2) ** 60
        if x == 0:
            return x
        while abs(x * scale) >= 2**24:
            scale /= 2
        return Fraction(round(x * scale)) / scale

    for product, m, n in ((0, 0, 0), (1, 3, 5), (2, 7, 7), (3, 4, 1), (3, 2, 6)):
        x = [Fraction(float(a[k, product, m, 0])) for k in range(4)]
        y = [Fraction(float(b[k, product, n, 0])) for k in range(4)]
        z = Fraction(float(c[product, m, n, 0]))
        if half_d:
            low = single(x[1] * y[1] + single(x[0] * y[0]))
            high = single(x[3] * y[3] + single(x[2] * y[2]))
            total = np.float32(float(single(single(z + low) + high)))
            expected = int(total.astype(np.float16).view(np.uint16))
        else:
            chain = Fraction(0)
            for k in range(4):
                chain = single(x[k] * y[k] + chain)
            expected = int(np.float32(float(single(z + chain))).view(np.uint32))
        assert int(found[product, m, n, 0]) == expected


def test_m8n8k4_on_volta_is_one_step_of_four() -> None:
    for target in ("sm_70", "sm_75"):
        op = mma("m8n8k4.col.row.f32.f16.f16.f32", target)
        a, b = (random_codes((4, 4, 8, 2), seed, 16) for seed in (1, 2))
        c = random_codes((4, 8, 8, 2), 3, 32)
        how = fused_parameters(Architecture.VOLTA, "f16", "f32")
        expected = dot(decode("f16", a)[:, :, :, None], decode("f16", b)[:, :, None], c, how)
        np.testing.assert_array_equal(op.plan.compute(a, b, c, None, None), expected)


def test_f64_is_a_chain_in_ascending_k() -> None:
    op = mma("m16n8k4.row.col.f64.f64.f64.f64", "sm_90")
    a = np.zeros((4, 16, 1))
    a[:, 0, 0] = [1.0, 2.0**-53, 2.0**-53, -1.0]
    b = np.ones((4, 8, 1))
    c = np.zeros((16, 8, 1), np.uint64)
    result = op.plan.compute(a.view(np.uint64), b.view(np.uint64), c, None, None)
    assert np.ascontiguousarray(result).view(np.float64)[0, 0, 0] == 0.0
    a[:, 0, 0] = [2.0**-53, 2.0**-53, 1.0, -1.0]
    result = op.plan.compute(a.view(np.uint64), b.view(np.uint64), c, None, None)
    assert np.ascontiguousarray(result).view(np.float64)[0, 0, 0] == 2.0**-52
