"""Every execution lies within its bound: random expressions, infinities and NaN among the operands.

An execution picks numbers within the bounds of the operands (anything at all where a bound is
infinite), rounds as IEEE 754 says, and errs in approximations by what the PTX ISA allows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fragir.reference import elementwise
from fragir.reference.bounded import Bounded
from fragir.reference.elementwise import BINARY, UNARY
from fragir.reference.formats import FLOATS, Array, FloatFormat, Floats, round_to, spacing
from fragir.reference.tensor_cores import chains, dot

F32 = FLOATS["f32"]
Run = Callable[[Floats, FloatFormat, np.random.Generator], Floats]
VALUES = [
    *(0.0, -0.0, 1.0, -1.0, 0.5, 3.25, 88.0, 127.9, 128.0, -150.0, 300.0, 1e4, 65519.0, -70000.0),
    *(2.0**127, 1e-40, 2.0**-24, -1e30, 3e38, np.inf, -np.inf, np.nan),
]
SLACKS = [0.0, 0.0, 2.0**-20, 0.25, 1.0, 1e5, 1e23]
ANYTHING = [np.nan, np.inf, -np.inf, 0.0, 1.0, -2.5, 3e38]


def operands(form: FloatFormat, generator: np.random.Generator, count: int) -> Bounded:
    """Numbers of the format with bounds; infinities and NaN are certain or unknown."""
    value = round_to(generator.choice(VALUES, count), form)
    bound = generator.choice(SLACKS, count) * generator.choice([0.0, 1.0], count)
    bound = np.where(np.isfinite(value), bound, 0.0)
    return Bounded(value, np.where(generator.random(count) < 0.1, np.inf, bound))


def within(x: Bounded, form: FloatFormat, generator: np.random.Generator) -> Floats:
    """Numbers of the format that an execution may have for these."""
    step = generator.choice([-1.0, -0.4, 0.0, 0.7, 1.0], x.value.shape)
    slack = np.where(x.unknown, 0.0, x.bound)
    moved = round_to(x.value + step * slack, form)
    near = np.where((np.abs(moved - x.value) <= x.bound) & (x.bound > 0), moved, x.value)
    return np.where(x.unknown, round_to(generator.choice(ANYTHING, x.value.shape), form), near)


def _approximate(
    true: Callable[[Floats], Floats],
    allowed: Callable[[Floats, Floats], Floats],
    from_nearest: bool = False,
) -> Run:
    def run(x: Floats, form: FloatFormat, generator: np.random.Generator) -> Floats:
        exact = true(x)
        nearest = round_to(exact, F32)
        certain = np.isinf(x) | (x == 0) | ~np.isfinite(exact)
        off = np.where(certain, 0.0, allowed(x, exact))
        start = nearest if from_nearest else exact
        result = round_to(start + generator.choice([-1.0, 0.0, 0.9, 1.0], x.shape) * off, F32)
        result = np.where(np.abs(result - start) <= off, result, nearest)
        result = np.where(certain, start, result)  # also the sign of a zero
        return round_to(result, form)

    return run


def _ulp(count: float) -> Callable[[Floats, Floats], Floats]:
    def allowed(x: Floats, y: Floats) -> Floats:
        result: Floats = count * spacing(np.minimum(np.abs(y), F32.largest), F32)
        return result

    return allowed


def _of_angles(x: Floats, y: Floats) -> Floats:
    near: Array = np.abs(x) <= 2 * np.pi
    return np.where(near, np.float64(2.0**-20.5), np.float64(2.0**-14.7))


def _exp(x: Floats, form: FloatFormat, generator: np.random.Generator) -> Floats:
    scaled = round_to(x * float(np.float32(1.4426950408889634)), F32)
    return RUN["math.exp2"](scaled, form, generator)


# the largest errors of the PTX ISA, sections 9.7.3.16 to 22
RUN: dict[str, Run] = {
    "arith.negf": lambda x, form, _: -x,
    "math.absf": lambda x, form, _: np.abs(x),
    "math.floor": lambda x, form, _: np.floor(x),
    "math.roundeven": lambda x, form, _: np.rint(x),
    "math.sqrt": lambda x, form, _: round_to(np.sqrt(x), form),
    "math.exp2": _approximate(np.exp2, _ulp(2), from_nearest=True),
    "math.exp": _exp,
    "math.tanh": _approximate(np.tanh, lambda x, y: 2.0**-11 * np.abs(y)),
    "math.rsqrt": _approximate(lambda x: 1 / np.sqrt(x), lambda x, y: 2.0**-22.9 * np.abs(y)),
    "math.log2": _approximate(
        np.log2, lambda x, y: 2.0**-22 * np.where((x > 0.5) & (x < 2), 1.0, np.abs(y))
    ),
    "math.sin": _approximate(np.sin, _of_angles),
    "math.cos": _approximate(np.cos, _of_angles),
}
OF_TWO: dict[str, Callable[[Floats, Floats], Floats]] = {
    "arith.addf": np.add,
    "arith.subf": np.subtract,
    "arith.mulf": np.multiply,
    "arith.divf": np.divide,
    "arith.maximumf": np.maximum,
    "arith.minimumf": np.minimum,
    "arith.maxnumf": np.fmax,
    "arith.minnumf": np.fmin,
}
# what has no opposite sign of 0 to divide by: signs of zeros are not followed
TREES = st.recursive(
    st.sampled_from(["x", "y", "z"]),
    lambda inner: st.one_of(
        st.tuples(st.sampled_from(sorted(RUN)), inner),
        st.tuples(st.sampled_from(sorted(OF_TWO)), inner, inner),
        st.tuples(st.just("fma"), inner, inner, inner),
        st.tuples(st.just("select"), st.integers(0, 15), inner, inner, inner),
    ),
    max_leaves=5,
)
Tree = Any  # a leaf's name, or an operation with its operands


def bounds(tree: Tree, leaves: dict[str, Bounded], form: FloatFormat) -> Bounded:
    if isinstance(tree, str):
        return leaves[tree]
    name, *rest = tree
    if name == "select":
        predicate = rest.pop(0)
        x, y, z = (bounds(part, leaves, form) for part in rest)
        return elementwise.select(elementwise.compare(predicate, x, y), y, z)
    parts = [bounds(part, leaves, form) for part in rest]
    if name == "fma":
        return elementwise.fma(parts[0], parts[1], parts[2], form)
    if name in RUN:
        return UNARY[name](parts[0], form)
    return BINARY[name](parts[0], parts[1], form)


HOLDS = ("", "=", ">", ">=", "<", "<=", "<>", "o")


def execution(
    tree: Tree, leaves: dict[str, Floats], form: FloatFormat, generator: np.random.Generator
) -> Floats:
    if isinstance(tree, str):
        return leaves[tree]
    name, *rest = tree
    if name == "select":
        predicate = rest.pop(0)
        x, y, z = (execution(part, leaves, form, generator) for part in rest)
        return np.where(_compared(predicate, x, y), y, z)
    parts = [execution(part, leaves, form, generator) for part in rest]
    if name == "fma":
        x, y, z = parts
        product = x * y  # exact: both have at most 24 bits
        odd = elementwise.round_to_odd(product, z, product + z)
        odd = np.where(np.isinf(product), product, odd)
        return round_to(np.where(np.isnan(product + z), np.nan, odd), form)
    if name in OF_TWO:
        return round_to(OF_TWO[name](parts[0], parts[1]), form)
    return RUN[name](parts[0], form, generator)


def _compared(predicate: int, x: Floats, y: Floats) -> Array:
    """arith.cmpf in MLIR's order: false oeq ogt oge olt ole one ord ueq ugt ... une uno true."""
    nan = np.isnan(x) | np.isnan(y)
    plain = {"=": x == y, ">": x > y, "<": x < y, "o": ~nan}
    if predicate in (0, 15):
        return np.full(x.shape, predicate == 15)
    if predicate == 14:
        return nan
    ordered = [plain[sign] & ~nan for sign in HOLDS[predicate % 7 or 7]]
    return np.logical_or.reduce(ordered) | (nan & (predicate > 7))


@given(TREES, st.sampled_from(["f32", "f16", "bf16"]), st.integers(0, 2**32))
@example(("arith.divf", "x", ("math.roundeven", "y")), "f32", 0)
@example(("arith.divf", "x", ("arith.divf", "y", "x")), "f32", 0)
@example(("arith.divf", "x", ("arith.mulf", ("arith.subf", "z", "z"), "y")), "f32", 0)
@example(("math.rsqrt", ("fma", "x", "y", "x")), "f32", 0)
@example(("arith.divf", "x", ("math.sin", "y")), "f32", 0)
@settings(max_examples=100, deadline=None)
def test_expressions(tree: Tree, name: str, seed: int) -> None:
    form, generator = FLOATS[name], np.random.default_rng(seed)
    leaves = {leaf: operands(form, generator, 200) for leaf in "xyz"}
    with np.errstate(all="ignore"):
        found = bounds(tree, leaves, form)
        for _ in range(4):
            numbers = {leaf: within(x, form, generator) for leaf, x in leaves.items()}
            _holds(found, execution(tree, numbers, form, generator))


def _holds(found: Bounded, result: Floats) -> None:
    same = (found.value == result) | (np.isnan(found.value) & np.isnan(result))
    ok = same | (np.abs(found.value - result) <= found.bound) | np.isinf(found.bound)
    assert ok.all(), (found.value[~ok], found.bound[~ok], result[~ok])


TERMS = [0.0, 0.0, 1.0, -2.0, 0.375, 1e15, 2.0**100, -(2.0**120), 2.0**-60, np.inf, -np.inf, np.nan]


@given(st.integers(0, 2**32), st.integers(1, 6), st.booleans(), st.sampled_from([0.0, 0.02, 0.1]))
@settings(max_examples=100, deadline=None)
def test_products(seed: int, k: int, uncertain: bool, rare: float) -> None:
    """bf16 sums in f32: any order, rounded once or after every term."""
    generator, form = np.random.default_rng(seed), FLOATS["bf16"]
    shapes = {"a": (12, k), "b": (k, 12), "c": (12, 12)}
    leaves: dict[str, Bounded] = {}
    for name, shape in shapes.items():
        value = generator.choice(TERMS[:6], shape)
        value = np.where(generator.random(shape) < rare, generator.choice(TERMS, shape), value)
        bound = np.where(generator.random(shape) < 0.1, 0.125, 0.0) * uncertain
        bound = np.where(np.isfinite(value), bound, 0.0)
        bound = np.where(generator.random(shape) < rare * uncertain / 4, np.inf, bound)
        leaves[name] = Bounded(round_to(value, form), bound)
    with np.errstate(all="ignore"):
        a, b, c = leaves.values()
        found = dot(a, b, c, ("bf16", "bf16", "f32"), chains("sm_80", "bf16", "f32"))
        for _ in range(4):
            left, right, start = (within(x, form, generator) for x in leaves.values())
            terms = [left[:, i, None] * right[None, i] for i in generator.permutation(k)]
            _holds(found, round_to(np.add.reduce([start, *terms]), F32))
            total = start
            for term in terms:
                total = round_to(total + round_to(term, F32), F32)
            _holds(found, total)
