"""Bounds of products against the published arithmetic of tensor cores, in exact rationals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest

from fragir.reference.bounded import Bounded, exactly
from fragir.reference.formats import FLOATS, Floats, round_to
from fragir.reference.tensor_cores import Chain, chains, dot, lowest_bit

TWO = Fraction(2)


@dataclass(frozen=True)
class Machine:
    """A row of the published tables: F, products a step, e_floor, and the rounding of a step."""

    target: str
    a: str
    accumulator: str
    instruction: str
    fraction: int
    step: int
    floor: int
    rounding: str


# Khattak and Mikaitis, arXiv 2512.07004; MMA-Sim, arXiv 2511.10909
MACHINES = [
    Machine("sm_70", "f16", "f32", "m8n8k4.f16", 23, 4, -131, "rz24"),
    Machine("sm_75", "f16", "f32", "m16n8k8.f16", 24, 8, -132, "rz24"),
    Machine("sm_80", "f16", "f32", "m16n8k16.f16", 24, 8, -132, "rz24"),
    Machine("sm_80", "f16", "f16", "m16n8k16.f16", 24, 8, -20, "rne11"),
    Machine("sm_80", "bf16", "f32", "m16n8k8.bf16", 24, 8, -132, "rz24"),
    Machine("sm_80", "tf32", "f32", "m16n8k8.tf32", 24, 4, -132, "rz24"),
    Machine("sm_89", "e4m3", "f32", "m16n8k32.e4m3", 13, 16, -132, "rz14"),
    Machine("sm_89", "e5m2", "f16", "m16n8k32.e5m2", 13, 16, -20, "rne11"),
    Machine("sm_90", "f16", "f32", "m16n8k16.f16", 25, 16, -133, "rz24"),
    Machine("sm_90", "f16", "f32", "m16n8k8.f16", 25, 8, -133, "rz24"),
    Machine("sm_90a", "bf16", "f32", "m64n128k16.bf16", 25, 16, -133, "rz24"),
    Machine("sm_90a", "f16", "f16", "m64n128k16.f16", 25, 16, -21, "rne11"),
    Machine("sm_90a", "e4m3", "f32", "m64n128k32.e4m3", 13, 32, -133, "rz14"),
    Machine("sm_120a", "e5m2", "f32", "m16n8k32.e5m2", 25, 32, -133, "rz24"),
]


def exponent(x: Fraction) -> int:
    """floor(log2 |x|)."""
    result = abs(x.numerator).bit_length() - x.denominator.bit_length()
    return result if abs(x) >= TWO**result else result - 1


def encoded(x: Fraction, lowest: int) -> int:
    """The exponent of the encoding."""
    return max(exponent(x), lowest)


def cut(x: Fraction, unit: Fraction) -> Fraction:
    whole = abs(x) // unit * unit
    return whole if x > 0 else -whole


def rounded(x: Fraction, rule: str) -> Fraction:
    if x == 0:
        return x
    digits = int(rule.removeprefix("rz").removeprefix("rne"))
    lowest = -14 if rule == "rne11" else -126
    unit = TWO ** (max(exponent(x), lowest) - digits + 1)
    if rule.startswith("rz"):
        return cut(x, unit)
    whole, rest = divmod(abs(x), unit)
    up = rest > unit / 2 or (rest == unit / 2 and whole % 2 == 1)
    return (whole + up) * unit * (1 if x > 0 else -1)


def executed(machine: Machine, a: Sequence[float], b: Sequence[float], c: float) -> Fraction:
    """One element of D, step by step."""
    lowest = FLOATS[machine.a].lowest
    low_c = -14 if machine.accumulator == "f16" else -126
    total = Fraction(c)
    for first in range(0, len(a), machine.step):
        part = slice(first, first + machine.step)
        terms: list[tuple[Fraction, int]] = []
        for x, y in zip(map(Fraction, a[part]), map(Fraction, b[part]), strict=True):
            if x * y:
                terms.append((x * y, encoded(x, lowest) + encoded(y, lowest)))
        if total:
            terms.append((total, encoded(total, low_c)))
        unit = TWO ** (max([machine.floor, *(e for _, e in terms)]) - machine.fraction)
        total = rounded(sum((cut(t, unit) for t, _ in terms), Fraction(0)), machine.rounding)
    return total


def operands(machine: Machine, kind: str, k: int, seed: int) -> tuple[Floats, Floats, Floats]:
    generator = np.random.default_rng(seed)
    form = FLOATS[machine.a]
    a: Floats = generator.standard_normal((4, k))
    b: Floats = generator.standard_normal((4, k))
    if kind == "wide":
        spread = 4 if form.lowest > -20 else 12
        a = a * 2.0 ** generator.integers(-spread, spread, a.shape)
        b = b * 2.0 ** generator.integers(-spread, spread, b.shape)
    elif kind == "subnormal":
        low = form.lowest if form.lowest > -20 else -70
        a = a * 2.0 ** (low + generator.integers(-2, 2, a.shape))
    elif kind == "cancelling":
        a, b = np.concatenate([a, a[:, ::-1]], 1), np.concatenate([b, -b[:, ::-1]], 1)
    c = generator.standard_normal((4, 4))
    if kind == "subnormal":
        c = c * 2.0 ** float(form.lowest if form.lowest > -20 else -100)
    wide = FLOATS["f16" if machine.accumulator == "f16" else "f32"]
    return round_to(a, form), round_to(b, form).T, round_to(c, wide)


@pytest.mark.parametrize(
    "machine", MACHINES, ids=lambda m: f"{m.target}-{m.instruction}-{m.accumulator}"
)
@pytest.mark.parametrize("kind", ["normal", "wide", "subnormal", "cancelling"])
def test_the_bound_holds(machine: Machine, kind: str) -> None:
    """Against exact execution, whether the instruction is known or open."""
    types = (machine.a, machine.a, machine.accumulator)
    for seed in range(2):
        a, b, c = operands(machine, kind, 64, seed)
        for instruction in (machine.instruction, None):
            if instruction is None and "m8n8k4" in machine.instruction:
                continue
            ways = chains(machine.target, machine.a, machine.accumulator, instruction)
            result = dot(exactly(a), exactly(b), exactly(c), types, ways)
            for i in range(4):
                for j in range(4):
                    found = executed(machine, a[i].tolist(), b[:, j].tolist(), float(c[i, j]))
                    error = abs(found - Fraction(float(result.value[i, j])))
                    assert error <= Fraction(float(result.bound[i, j]))


@pytest.mark.parametrize(
    "machine", MACHINES[:7] + MACHINES[8:9], ids=lambda m: f"{m.target}-{m.a}-{m.accumulator}"
)
def test_the_bound_is_no_excuse(machine: Machine) -> None:
    """At K = 256 the largest error uses a fair part of the bound: less than 1000 below it."""
    a, b, _ = operands(machine, "normal", 256, 7)
    ways = chains(machine.target, machine.a, machine.accumulator, machine.instruction)
    result = dot(exactly(a), exactly(b), None, (machine.a, machine.a, machine.accumulator), ways)
    errors = [
        abs(
            executed(machine, a[i].tolist(), b[:, j].tolist(), 0.0)
            - Fraction(float(result.value[i, j]))
        )
        for i in range(4)
        for j in range(4)
    ]
    assert float(result.bound.max()) < 1000 * float(max(errors))


def test_any_order_of_steps() -> None:
    """The bound does not depend on the order in which the steps come."""
    machine = MACHINES[2]
    a, b, _ = operands(machine, "wide", 64, 1)
    result = dot(exactly(a), exactly(b), None, ("f16", "f16", "f32"), chains("sm_80", "f16", "f32"))
    for seed in range(4):
        order = np.random.default_rng(seed).permutation(64)
        found = executed(machine, a[0, order].tolist(), b[order, 0].tolist(), 0.0)
        assert abs(found - Fraction(float(result.value[0, 0]))) <= Fraction(
            float(result.bound[0, 0])
        )


@pytest.mark.parametrize(
    "machine", MACHINES, ids=lambda m: f"{m.target}-{m.instruction}-{m.accumulator}"
)
def test_small_integers_are_exact(machine: Machine) -> None:
    """Sums that fit the accumulator: the bound is 0 and the execution agrees."""
    generator = np.random.default_rng(3)
    a, b = generator.integers(-2, 3, (4, 32)), generator.integers(-1, 2, (32, 4))
    c = generator.integers(-3, 4, (4, 4))
    left, right, addend = (exactly(x.astype(np.float64)) for x in (a, b, c))
    ways = chains(machine.target, machine.a, machine.accumulator, machine.instruction)
    result = dot(left, right, addend, (machine.a, machine.a, machine.accumulator), ways)
    assert result.exact
    assert np.array_equal(result.value, a @ b + c)
    for i in range(4):
        found = executed(machine, a[i].tolist(), b[:, i].tolist(), float(c[i, i]))
        assert found == int((a @ b + c)[i, i])


@pytest.mark.parametrize(
    "machine", MACHINES, ids=lambda m: f"{m.target}-{m.instruction}-{m.accumulator}"
)
def test_one_product_is_exact(machine: Machine) -> None:
    """One-hot operands with full significands."""
    form = FLOATS[machine.a]
    a, b = np.zeros((3, 32)), np.zeros((32, 3))
    a[1, 5], b[5, 2] = (
        form.largest / 2.0 ** np.frexp(form.largest)[1],
        -(2 - 2.0 ** (1 - form.precision)),
    )
    ways = chains(machine.target, machine.a, machine.accumulator)
    result = dot(exactly(a), exactly(b), None, (machine.a, machine.a, machine.accumulator), ways)
    assert result.exact
    found = executed(machine, a[1].tolist(), b[:, 2].tolist(), 0.0)
    assert found == Fraction(float(result.value[1, 2]))
    assert np.count_nonzero(result.value) == 1


def test_f64() -> None:
    generator = np.random.default_rng(0)
    a, b, c = (
        generator.standard_normal((8, 40)),
        generator.standard_normal((40, 8)),
        np.ones((8, 8)),
    )
    result = dot(
        exactly(a), exactly(b), exactly(c), ("f64", "f64", "f64"), chains("sm_80", "f64", "f64")
    )
    for i in range(8):
        exact = sum(
            (Fraction(x) * Fraction(y) for x, y in zip(a[i], b[:, i], strict=True)), Fraction(1)
        )
        # a chain of fused multiply-adds: round_to has no f64, Python's float rounds rationals right
        chain = 1.0
        for x, y in zip(a[i], b[:, i], strict=True):
            chain = float(Fraction(x) * Fraction(y) + Fraction(chain))
        value, bound = Fraction(float(result.value[i, i])), Fraction(float(result.bound[i, i]))
        assert abs(exact - value) <= bound
        assert abs(Fraction(chain) - value) <= bound
    assert result.bound.max() < 1e-12


def test_integers_wrap_around() -> None:
    a, b = np.full((1, 4), 127), np.full((4, 1), 127)
    c = np.array([[2**31 - 1]])
    result = dot(exactly(a), exactly(b), exactly(c), ("s8", "s8", "s32"), ())
    assert result.exact
    assert int(result.value[0, 0]) == (2**31 - 1 + 4 * 127 * 127) - 2**32


def test_bounds_of_operands_are_carried_on() -> None:
    generator = np.random.default_rng(1)
    a, b = generator.standard_normal((3, 16)), generator.standard_normal((16, 3))
    left, right = Bounded(a, np.full(a.shape, 1e-3)), Bounded(b, np.full(b.shape, 2e-3))
    ways = chains("sm_80", "f16", "f32")
    result = dot(left, right, None, ("f16", "f16", "f32"), ways)
    worst = (a + 1e-3 * np.sign(a)) @ (b + 2e-3 * np.sign(b))
    assert (np.abs(worst - result.value) <= result.bound).all()
    extreme = np.abs(a) @ np.full(b.shape, 2e-3) + np.full(a.shape, 1e-3) @ (np.abs(b) + 2e-3)
    assert (result.bound >= extreme).all()
    assert (result.bound <= extreme * 1.01).all()


@pytest.mark.parametrize("uncertain", ["a", "b", "c"])
def test_uncertain_operands_do_not_make_a_sum_exact(uncertain: str) -> None:
    """2^23 + 1 less a little is cut off to 2^23: a sum off by 1 of operands that are hardly off."""
    bound = {name: np.array([[2.0**-11 if name == uncertain else 0.0]]) for name in "abc"}
    one, large = np.ones((1, 1)), np.full((1, 1), 2.0**23)
    a, b, c = Bounded(one, bound["a"]), Bounded(one, bound["b"]), Bounded(large, bound["c"])
    result = dot(a, b, c, ("f16", "f16", "f32"), chains("sm_80", "f16", "f32"))
    assert result.value[0, 0] - result.bound[0, 0] <= 2.0**23


def test_a_sum_of_small_products_is_no_single_one() -> None:
    """1 + 2^-11 lies between two f16; what is 2^-40 above that is cut off before it is rounded."""
    a, b = np.array([[1.0, 2.0**-11, 2.0**-20]]), np.array([[1.0], [1.0], [2.0**-20]])
    result = dot(exactly(a), exactly(b), None, ("f16", "f16", "f16"), chains("sm_80", "f16", "f16"))
    assert result.value[0, 0] - result.bound[0, 0] <= 1.0


@pytest.mark.parametrize("target", ["sm_89", "sm_90", "sm_90a", "sm_120a"])
def test_the_compiler_may_choose_any_instruction(target: str) -> None:
    for name in ("m16n8k16.f16", "m16n8k8.tf32", "m16n8k32.e4m3"):
        a = name.partition(".")[2]
        assert set(chains(target, a, "f32", name)) <= set(chains(target, a, "f32"))


@pytest.mark.parametrize("target", ["sm_80", "sm_90a", "sm_120a"])
def test_products_below_the_smallest_number(target: str) -> None:
    """2^-160 is no multiple of 2^-149, so an f32 holds 0 or much more."""
    tiny = exactly(np.full((1, 1), 2.0**-80))
    result = dot(tiny, tiny, None, ("bf16", "bf16", "f32"), chains(target, "bf16", "f32"))
    assert result.bound[0, 0] >= 2.0**-160


def test_overflow_has_no_bound() -> None:
    a, b = np.full((1, 16), 60000.0), np.full((16, 1), 2.0)
    assert np.isinf(
        dot(
            exactly(a), exactly(b), None, ("f16", "f16", "f16"), chains("sm_80", "f16", "f16")
        ).bound
    )


def test_not_a_number_is_certain() -> None:
    a, b = np.ones((2, 4)), np.ones((4, 2))
    a[0, 0] = np.nan
    b[0, 1] = np.inf
    with np.errstate(invalid="ignore"):
        result = dot(
            exactly(a), exactly(b), None, ("f16", "f16", "f32"), chains("sm_80", "f16", "f32")
        )
    assert result.exact
    assert np.array_equal(result.value, [[np.nan, np.nan], [4, np.inf]], equal_nan=True)


def test_lowest_bit() -> None:
    assert lowest_bit(np.array([1.0, 12.0, 0.75, 2.0**-24, 0.0])).tolist() == [
        1,
        4,
        0.25,
        2.0**-24,
        np.inf,
    ]


def test_steps() -> None:
    assert Chain(16, 8, 24, chains("sm_80", "f16", "f32")[0].rounding).steps(77) == 10
