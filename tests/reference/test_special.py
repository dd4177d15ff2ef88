"""What infinities, NaN and masks do to bounds: certain where IEEE 754 decides, unknown else."""

from __future__ import annotations

import numpy as np
import pytest

from fragir.reference import elementwise
from fragir.reference.bounded import Bounded
from fragir.reference.elementwise import BINARY, UNARY
from fragir.reference.formats import FLOATS
from fragir.reference.tensor_cores import chains, dot

F32 = FLOATS["f32"]
INF, NAN = np.inf, np.nan
UNKNOWN = (1.0, INF)


def scalar(value: float, bound: float = 0.0) -> Bounded:
    return Bounded(np.array(value), np.array(bound))


@pytest.mark.parametrize(
    ("operation", "x", "y", "expected"),
    [
        ("arith.addf", (-INF, 0), (3.0, 0.5), -INF),
        ("arith.subf", (-INF, 0), (3.0, 0.5), -INF),
        ("arith.subf", (3.0, 0.5), (-INF, 0), INF),
        ("arith.subf", (INF, 0), (INF, 0), NAN),
        ("arith.addf", (NAN, 0), (3.0, 0.5), NAN),
        ("arith.addf", (NAN, 0), UNKNOWN, NAN),
        ("arith.mulf", (NAN, 0), (3.0, 0.5), NAN),
        ("arith.mulf", (NAN, 0), UNKNOWN, NAN),
        ("arith.mulf", (INF, 0), (-3.0, 0.5), -INF),
        ("arith.mulf", (INF, 0), (0.0, 0), NAN),
        ("arith.divf", (3.0, 0.5), (INF, 0), 0.0),
        ("arith.divf", (INF, 0), (-3.0, 0.5), -INF),
        ("arith.divf", (INF, 0), (INF, 0), NAN),
        ("arith.divf", (-3.0, 0), (0.0, 0), -INF),
        ("arith.divf", (0.0, 0), (0.0, 0), NAN),
        ("arith.maximumf", (-INF, 0), (INF, 0), INF),
        ("arith.maximumf", (INF, 0), (3.0, 0.5), INF),
        ("arith.maximumf", (NAN, 0), (3.0, 0.5), NAN),
        ("arith.minnumf", (NAN, 0), (3.0, 0), 3.0),
    ],
)
def test_decided(
    operation: str, x: tuple[float, float], y: tuple[float, float], expected: float
) -> None:
    with np.errstate(all="ignore"):
        found = BINARY[operation](scalar(*x), scalar(*y), F32)
    assert np.array_equal(found.value, expected, equal_nan=True)
    assert found.bound == 0


@pytest.mark.parametrize(
    ("operation", "x", "y"),
    [
        ("arith.mulf", (0.0, 0), UNKNOWN),  # which may be an infinity, or NaN
        ("arith.mulf", (INF, 0), (0.25, 0.5)),  # either sign, or NaN
        ("arith.divf", (INF, 0), (0.25, 0.5)),
        ("arith.divf", (0.0, 0), (0.25, 0.5)),
        ("arith.addf", (INF, 0), UNKNOWN),
        ("arith.maximumf", (INF, 0), UNKNOWN),
        ("arith.maxnumf", (NAN, 0), UNKNOWN),
    ],
)
def test_undecided(operation: str, x: tuple[float, float], y: tuple[float, float]) -> None:
    with np.errstate(all="ignore"):
        assert np.isinf(BINARY[operation](scalar(*x), scalar(*y), F32).bound)


@pytest.mark.parametrize("operation", ["math.tanh", "math.sin", "math.exp", "math.floor"])
def test_nothing_is_known_of_a_function_of_the_unknown(operation: str) -> None:
    with np.errstate(all="ignore"):
        assert np.isinf(UNARY[operation](scalar(*UNKNOWN), F32).bound)


@pytest.mark.parametrize("operation", ["math.exp2", "math.exp"])
def test_a_masked_exponent_is_judged(operation: str) -> None:
    """-1e30 less a maximum that is uncertain, and -inf less the same: both vanish."""
    maximum = scalar(12.25, 0.125)
    with np.errstate(all="ignore"):
        for mask, slack in ((-1e30, 2.5 * F32.smallest), (-INF, 0.0)):
            difference = elementwise.sub(scalar(mask), maximum, F32)
            found = UNARY[operation](difference, F32)
            assert found.value == 0
            assert found.bound <= slack * 1.001


def test_an_exponential_overflows_for_certain_or_perhaps() -> None:
    x = Bounded(np.array([200.0, 128.0, 127.99, 127.0]), np.array([1.0, 0.5, 0.1, 0.5]))
    with np.errstate(all="ignore"):
        found = UNARY["math.exp2"](x, F32)
    assert found.value[0] == INF
    assert found.bound[0] == 0
    assert np.isinf(found.bound[1:3]).all()
    assert np.isfinite(found.bound[3])


@pytest.mark.parametrize("operation", ["math.sqrt", "math.rsqrt", "math.log2", "math.log"])
def test_what_is_negative_for_certain_gives_nan(operation: str) -> None:
    with np.errstate(all="ignore"):
        found = UNARY[operation](scalar(-2.0, 0.5), F32)
        assert np.isnan(found.value)
        assert found.bound == 0
        assert np.isinf(UNARY[operation](scalar(-2.0, 2.5), F32).bound)


@pytest.mark.parametrize("predicate", range(16))
def test_comparisons_with_the_unknown(predicate: int) -> None:
    """It may be NaN; one that is compared with NaN is unordered whatever it is."""
    found = elementwise.compare(predicate, scalar(*UNKNOWN), scalar(2.0))
    assert bool(found.bound) == (predicate not in (0, 15))
    assert elementwise.compare(predicate, scalar(*UNKNOWN), scalar(NAN)).exact


def test_a_product_with_infinite_terms() -> None:
    ways = chains("sm_80", "f16", "f32")
    a = Bounded(np.array([[INF, 1.0], [NAN, 1.0], [2.0, 1.0], [INF, 1.0]]), np.zeros((4, 2)))
    a.bound[:3, 1] = 0.5
    b = Bounded(np.array([[2.0, 0.0, 0.25], [1.0, 1.0, 1.0]]), np.zeros((2, 3)))
    b.bound[0, 2] = 0.5
    with np.errstate(all="ignore"):
        found = dot(a, b, None, ("f16", "f16", "f32"), ways)
    assert np.array_equal(found.value[0, :2], [INF, NAN], equal_nan=True)
    assert found.bound[0, :2].tolist() == [0, 0]
    assert np.isinf(found.bound[[0, 3], 2]).all()  # infinity times 0.25 +- 0.5
    assert np.isnan(found.value[1]).all()
    assert not found.bound[1].any()
    assert np.isfinite(found.bound[2]).all()


def test_an_exact_product_that_overflows_has_no_bound() -> None:
    """All terms are multiples of one power of two, and the sum is infinite or the largest."""
    x = Bounded(np.full((1, 1), 2.0**100), np.zeros((1, 1)))
    found = dot(x, x, None, ("bf16", "bf16", "f32"), chains("sm_80", "bf16", "f32"))
    assert np.isinf(found.bound).all()
