"""Bounds of scalar operations hold against exact arithmetic and the documented errors."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from fragir.reference import elementwise, integers
from fragir.reference.bounded import Bounded, exactly, rounded
from fragir.reference.elementwise import BINARY, UNARY
from fragir.reference.formats import FLOATS, INTEGERS, Floats, round_to, spacing

SEED = 5
EXACT: dict[str, Callable[[Fraction, Fraction], Fraction]] = {
    "arith.addf": lambda x, y: x + y,
    "arith.subf": lambda x, y: x - y,
    "arith.mulf": lambda x, y: x * y,
    "arith.divf": lambda x, y: x / y,
}


def numbers(name: str, count: int, seed: int) -> Floats:
    """Numbers of a format, small and large."""
    generator = np.random.default_rng(seed)
    top = 6 if name == "f16" else 30
    scale = 2.0 ** generator.integers(-top, top, count)
    return round_to(generator.standard_normal(count) * scale, FLOATS[name])


@pytest.mark.parametrize("name", ["f16", "bf16", "f32"])
@pytest.mark.parametrize("operation", EXACT)
def test_exact_operands_give_the_rounded_result(operation: str, name: str) -> None:
    form = FLOATS[name]
    x, y = numbers(name, 300, 1), numbers(name, 300, 2)
    with np.errstate(all="ignore"):
        result = BINARY[operation](exactly(x), exactly(y), form)
    assert result.exact
    for a, b, found in zip(x, y, result.value, strict=True):
        exact = EXACT[operation](Fraction(float(a)), Fraction(float(b)))
        expected = nearest_even_of(exact, form.precision, form.lowest)
        if abs(expected) > form.largest:
            assert np.isinf(found)
        else:
            assert Fraction(float(found)) == expected


def nearest_even_of(exact: Fraction, precision: int, lowest: int) -> Fraction:
    """Rounding to nearest even in exact arithmetic, without an upper limit."""
    if exact == 0:
        return exact
    size, exponent = abs(exact), lowest
    while size >= Fraction(2) ** (exponent + 1):
        exponent += 1
    unit = Fraction(2) ** (exponent - precision + 1)
    whole, rest = divmod(size, unit)
    up = rest > unit / 2 or (rest == unit / 2 and whole % 2 == 1)
    return (whole + up) * unit * (1 if exact > 0 else -1)


@pytest.mark.parametrize("name", ["f16", "f32"])
def test_fma_rounds_once(name: str) -> None:
    form = FLOATS[name]
    x, y = numbers(name, 400, 3), numbers(name, 400, 4)
    z = round_to(-x * y * (1 + numbers(name, 400, 5) * 2.0**-12), form)
    x, y, z = (np.where(np.abs(x * y) < form.largest / 4, v, 1.0) for v in (x, y, z))
    result = elementwise.fma(exactly(x), exactly(y), exactly(z), form)
    assert result.exact
    for a, b, c, found in zip(x, y, z, result.value, strict=True):
        exact = Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c))
        assert Fraction(float(found)) == nearest_even_of(exact, form.precision, form.lowest)


def test_fma_between_two_floats() -> None:
    """A sum that float64 rounds onto a tie of f32, and that is none."""
    x, y, z = 1 + 2.0**-12, 1 + 2.0**-12, 2.0**-80
    a, b, c = (exactly(np.array(v)) for v in (x, y, z))
    found = elementwise.fma(a, b, c, FLOATS["f32"])
    exact = Fraction(x) * Fraction(y) + Fraction(z)
    assert Fraction(float(found.value)) == nearest_even_of(exact, 24, -126)


def uncertain(name: str, count: int, seed: int) -> Bounded:
    generator = np.random.default_rng(seed)
    value: Any = generator.standard_normal(count) * 4
    return Bounded(value, np.abs(value) * 2.0 ** generator.integers(-20, -6, count))


def inside(x: Bounded, seed: int) -> Floats:
    """Values that an execution may have."""
    generator = np.random.default_rng(seed)
    return x.value + x.bound * generator.choice([-1.0, -0.5, 0.0, 0.7, 1.0], x.value.shape)


@pytest.mark.parametrize("operation", EXACT)
def test_uncertain_operands(operation: str) -> None:
    """Whatever the operands are within their bounds, the rounded result is within its own."""
    form = FLOATS["f16"]
    x, y = uncertain("f16", 400, 1), uncertain("f16", 400, 2)
    result = BINARY[operation](x, y, form)
    assert not result.exact
    for seed in range(5):
        for a, b, value, bound in zip(
            inside(x, seed), inside(y, seed + 9), result.value, result.bound, strict=True
        ):
            exact = EXACT[operation](Fraction(float(a)), Fraction(float(b)))
            found = nearest_even_of(exact, form.precision, form.lowest)
            assert abs(found - Fraction(float(value))) <= Fraction(float(bound))


@pytest.mark.parametrize(("x", "y"), [(0.25, 0.0), (0.0, 0.25)])
def test_division_by_or_of_what_is_uncertain(x: float, y: float) -> None:
    """3 +- x by 2 +- y: the ends of what may come out lie within the bound, but for a rounding."""
    three, two = np.array(3.0), np.array(2.0)
    result = BINARY["arith.divf"](
        Bounded(three, np.array(x)), Bounded(two, np.array(y)), FLOATS["f32"]
    )
    for end in ((3 - x) / (2 + y), (3 + x) / (2 - y)):
        assert abs(result.value - end) <= result.bound


MONOTONE: dict[str, Callable[[Floats], Floats]] = {
    "math.sqrt": np.sqrt,
    "math.rsqrt": lambda x: 1 / np.sqrt(x),
    "math.exp2": np.exp2,
    "math.exp": np.exp,
    "math.log2": np.log2,
    "math.log": np.log,
    "math.tanh": np.tanh,
    "math.sin": np.sin,
    "math.cos": np.cos,
    "math.absf": np.abs,
    "arith.negf": np.negative,
    "math.floor": np.floor,
    "math.ceil": np.ceil,
    "math.trunc": np.trunc,
    "math.roundeven": np.rint,
}


def picked(condition: npt.NDArray[np.bool_], x: float, y: Floats | float) -> Floats:
    return np.where(condition, x, y)


# the largest error that the PTX ISA allows (sections 9.7.3.16 to 22), of a result in f32
ALLOWED: dict[str, Callable[[Floats, Floats], Floats]] = {
    "math.rsqrt": lambda x, y: 2.0**-22.9 * np.abs(y),
    "math.exp2": lambda x, y: 2 * spacing(np.abs(y), FLOATS["f32"]),
    "math.log2": lambda x, y: 2.0**-22 * picked((x > 0.5) & (x < 2), 1.0, np.abs(y)),
    "math.tanh": lambda x, y: 2.0**-11 * np.abs(y),
    "math.sin": lambda x, y: picked(np.abs(x) <= 2 * np.pi, 2.0**-20.5, 2.0**-14.7),
    "math.cos": lambda x, y: picked(np.abs(x) <= 2 * np.pi, 2.0**-20.5, 2.0**-14.7),
}


def arguments(operation: str) -> Floats:
    generator = np.random.default_rng(SEED)
    x = (generator.standard_normal(2000) * 3).astype(np.float32).astype(np.float64)
    positive = operation in ("math.sqrt", "math.rsqrt", "math.log2", "math.log")
    return np.abs(x) + 2.0**-20 if positive else x


@pytest.mark.parametrize("operation", ALLOWED)
@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_what_the_isa_allows_is_within_the_bound(operation: str, sign: float) -> None:
    x = round_to(arguments(operation), FLOATS["f32"])
    true = MONOTONE[operation](x)
    worst = true + sign * ALLOWED[operation](x, true)
    if operation == "math.exp2":  # from the correctly rounded result
        worst = round_to(true, FLOATS["f32"]) + sign * ALLOWED[operation](x, true)
    result = UNARY[operation](exactly(x), FLOATS["f32"])
    assert (np.abs(worst - result.value) <= result.bound).all()
    # and not much more is allowed
    allowed = np.abs(worst - result.value).max()
    assert np.median(result.bound) <= 4 * allowed


@pytest.mark.parametrize("operation", ["math.exp", "math.log"])
def test_scaled_functions(operation: str) -> None:
    """exp and log as the compiler writes them: a rounded multiplication before or after."""
    f32 = np.float32
    x = round_to(arguments(operation), FLOATS["f32"]).astype(f32)
    if operation == "math.exp":
        found = np.exp2((x * f32(1.4426950408889634)).astype(np.float64)).astype(f32)
    else:
        found = np.log2(x.astype(np.float64)).astype(f32) * f32(0.6931471805599453)
    result = UNARY[operation](exactly(x.astype(np.float64)), FLOATS["f32"])
    assert (np.abs(found.astype(np.float64) - result.value) <= result.bound).all()
    assert (result.bound <= 2.0**-18 * np.maximum(1, np.abs(result.value))).all()


@pytest.mark.parametrize("operation", MONOTONE)
@pytest.mark.parametrize("name", ["f16", "f32"])
def test_uncertain_arguments(operation: str, name: str) -> None:
    value = arguments(operation)
    x = Bounded(value, np.abs(value) * 2.0**-10)
    result = UNARY[operation](x, FLOATS[name])
    for seed in range(5):
        found = MONOTONE[operation](inside(x, seed))
        assert (np.abs(found - result.value) <= result.bound).all()


def test_nothing_is_known_of_a_large_angle() -> None:
    assert np.isinf(UNARY["math.sin"](exactly(np.array(400.0)), FLOATS["f32"]).bound)


def test_special_values_are_certain() -> None:
    special = exactly(np.array([np.inf, -np.inf, np.nan]))
    with np.errstate(all="ignore"):
        for operation in MONOTONE:
            result = UNARY[operation](special, FLOATS["f32"])
            assert (result.bound == 0).all(), operation


def test_overflow_that_may_happen_has_no_bound() -> None:
    form = FLOATS["f16"]
    x = Bounded(np.array([65500.0, 70000.0, 65520.0]), np.array([1.0, 1.0, 10.0]))
    result = rounded(x, form)
    assert result.value.tolist()[1] == np.inf
    assert result.bound.tolist()[1] == 0
    assert np.isfinite(result.bound[0])
    assert np.isinf(result.bound[2])


@pytest.mark.parametrize("predicate", range(16))
def test_comparisons(predicate: int) -> None:
    """Against the definition: ordered predicates are false and unordered true for a NaN."""
    values = [-1.0, 0.0, 2.0, np.nan]
    names = "false oeq ogt oge olt ole one ord ueq ugt uge ult ule une uno true".split()
    name = names[predicate]
    for a in values:
        for b in values:
            nan = np.isnan(a) or np.isnan(b)
            plain = {
                "eq": a == b,
                "gt": a > b,
                "ge": a >= b,
                "lt": a < b,
                "le": a <= b,
                "ne": a != b,
            }
            wanted = {
                "false": False,
                "true": True,
                "ord": not nan,
                "uno": nan,
            }.get(name)
            if wanted is None:
                wanted = (name[0] == "u") if nan else plain[name[1:]]
            found = elementwise.compare(predicate, exactly(np.array(a)), exactly(np.array(b)))
            assert bool(found.value) == wanted, (name, a, b)
            assert found.exact


def test_an_uncertain_comparison_covers_both_ways() -> None:
    x = Bounded(np.array([1.0, 1.0]), np.array([0.1, 0.1]))
    condition = elementwise.compare(4, x, exactly(np.array([1.05, 2.0])))
    assert condition.bound.tolist() == [1, 0]
    picked = elementwise.select(
        condition, exactly(np.array([0.0, 0.0])), exactly(np.array([3.0, 3.0]))
    )
    assert picked.bound.tolist() == [pytest.approx(3.0), 0.0]
    assert picked.bound[0] >= 3.0


# Integers ----------------------------------------------------------------------------------------


def reference_integer(name: str, x: int, y: int, bits: int) -> int | None:
    """Integer operations in Python, on two's complement of `bits`."""
    mask = (1 << bits) - 1
    ux, uy = x & mask, y & mask
    count = min(uy, bits)

    def truncated(a: int, b: int) -> int:
        quotient = abs(a) // abs(b)
        return quotient if (a < 0) == (b < 0) else -quotient

    if (y == 0 and ("div" in name or "rem" in name)) or (name == "ipowi" and x == 0 > y):
        return None
    result = {
        "addi": lambda: x + y,
        "subi": lambda: x - y,
        "muli": lambda: x * y,
        "divsi": lambda: truncated(x, y),
        "remsi": lambda: x - truncated(x, y) * y,
        "divui": lambda: ux // uy,
        "remui": lambda: ux % uy,
        "minsi": lambda: min(x, y),
        "maxsi": lambda: max(x, y),
        "minui": lambda: min(ux, uy),
        "maxui": lambda: max(ux, uy),
        "andi": lambda: ux & uy,
        "ori": lambda: ux | uy,
        "xori": lambda: ux ^ uy,
        "shli": lambda: ux << count,
        "shrui": lambda: ux >> count,
        "shrsi": lambda: x >> count,
        "ceildivui": lambda: -(-ux // uy),
        "ceildivsi": lambda: -(-x // y),
        "floordivsi": lambda: x // y,
        "ipowi": lambda: pow(x, y, 1 << bits) if y >= 0 else x ** (y & 1) if abs(x) == 1 else 0,
    }[name]() & mask
    return result - (1 << bits) if result >> (bits - 1) else result


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("operation", integers.BINARY)
def test_integer_operations(operation: str, bits: int) -> None:
    form = INTEGERS[f"s{bits}"]
    low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    generator = np.random.default_rng(SEED)
    pool = [low, low + 1, -7, -1, 0, 1, 2, 31, 33, 70, high, *generator.integers(low, high, 8)]
    x, y = (np.array(v, np.int64) for v in zip(*((int(a), int(b)) for a in pool for b in pool)))
    with np.errstate(all="ignore"):
        result = integers.apply(operation, exactly(x), exactly(y), form)
    for a, b, value, bound in zip(x, y, result.value, result.bound, strict=True):
        expected = reference_integer(operation.partition(".")[2], int(a), int(b), bits)
        if expected is None:
            assert np.isinf(bound)
        else:
            assert (int(value), bound) == (expected, 0.0), (operation, a, b)


def test_float_to_integer_is_clamped() -> None:
    x = exactly(np.array([1.9, -1.9, 1e12, -1e12, np.nan, np.inf]))
    with np.errstate(all="ignore"):
        assert integers.cast(x, "f32", "s32").value.tolist() == [
            1,
            -1,
            2**31 - 1,
            -(2**31),
            0,
            2**31 - 1,
        ]
        assert integers.cast(x, "f32", "u8").value.tolist() == [1, 0, 255, 0, 0, 255]


def test_an_uncertain_float_near_an_integer() -> None:
    x = Bounded(np.array([2.0, 2.5]), np.array([0.01, 0.01]))
    assert integers.cast(x, "f32", "s32").bound.tolist() == [1.0, 0.0]
