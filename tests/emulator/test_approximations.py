"""Approximate instructions: within the bounds that PTX ISA 9.2 states, and its tables of specials.

Every 16-bit source, and single-precision sources over the whole range. The exact values are numpy's
in double precision, whose errors are far below every bound.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest

from .batch import evaluate_all
from .test_scalar_values import halves

F64 = npt.NDArray[np.float64]
Function = Callable[[F64], F64]


def singles(low: float, high: float, seed: int = 1) -> npt.NDArray[np.float32]:
    """Values of both ends' exponents and all between, evenly in their bits."""
    ends = np.array([low, high], np.float32).view(np.uint32)
    bits = np.random.default_rng(seed).integers(int(ends[0]), int(ends[1]), 20_000)
    return bits.astype(np.uint32).view(np.float32)


def one(line: str, x: npt.NDArray[np.float32]) -> F64:
    (bits,) = evaluate_all([line], {"r1": x.view(np.uint32)})
    return bits.astype(np.uint32).view(np.float32).astype(np.float64)


# instruction, function, range of magnitudes, both signs?, largest relative error
RELATIVE: list[tuple[str, Function, float, float, bool, float]] = [
    ("rcp.approx.f32", lambda x: 1 / x, 2.0**-126, 2.0**126, True, 2.0**-23),
    ("rcp.approx.ftz.f32", lambda x: 1 / x, 2.0**-126, 2.0**126, True, 2.0**-23),
    ("sqrt.approx.f32", np.sqrt, 2.0**-126, 3e38, False, 2.0**-23),
    ("rsqrt.approx.f32", lambda x: 1 / np.sqrt(x), 2.0**-126, 3e38, False, 2.0**-22.9),
    ("ex2.approx.f32", np.exp2, 2.0**-20, 126.0, True, 2.0**-22),
    ("lg2.approx.f32", np.log2, 2.0, 3e38, False, 2.0**-22),
    ("lg2.approx.f32", np.log2, 2.0**-126, 0.5, False, 2.0**-22),
    ("tanh.approx.f32", np.tanh, 2.0**-30, 20.0, True, 2.0**-11),
]


@pytest.mark.parametrize("case", RELATIVE, ids=lambda c: f"{c[0]}-{c[2]:.3g}")
def test_relative_bounds(case: tuple[str, Function, float, float, bool, float]) -> None:
    line, function, low, high, signs, bound = case
    x = singles(low, high)
    x = np.concatenate([x, -x]) if signs else x
    exact = function(x.astype(np.float64))
    assert (np.abs(one(f"{line} %r0, %r1", x) - exact) <= bound * np.abs(exact)).all()


@pytest.mark.parametrize(
    ("line", "function", "low", "high", "bound"),
    [
        ("lg2.approx.f32", np.log2, 0.5, 2.0, 2.0**-22),
        ("sin.approx.f32", np.sin, 1e-30, np.pi, 2.0**-20.5),
        ("cos.approx.f32", np.cos, 1e-30, np.pi, 2.0**-20.5),
        ("sin.approx.ftz.f32", np.sin, np.pi, 100 * np.pi, 2.0**-14.7),
        ("cos.approx.ftz.f32", np.cos, np.pi, 100 * np.pi, 2.0**-14.7),
    ],
)
def test_absolute_bounds(
    line: str, function: Function, low: float, high: float, bound: float
) -> None:
    x = singles(low, high)
    x = x if line.startswith("lg2") else np.concatenate([x, -x])
    assert (np.abs(one(f"{line} %r0, %r1", x) - function(x.astype(np.float64))) <= bound).all()


@pytest.mark.parametrize("word", ["approx", "full", "approx.ftz", "full.ftz"])
def test_division(word: str) -> None:
    """Two units in the last place for divisors in 2^-126 to 2^126; beyond them .approx gives 0."""
    a, b = singles(1e-10, 1e10, 1), singles(2.0**-126, 2.0**126, 2)
    (bits,) = evaluate_all(
        [f"div.{word}.f32 %r0, %r1, %r2"], {"r1": a.view(np.uint32), "r2": b.view(np.uint32)}
    )
    got = bits.astype(np.uint32).view(np.float32).astype(np.float64)
    exact = a.astype(np.float64) / b
    normal = (exact > 2.0**-126) & (exact < 3.4e38)
    assert normal.sum() > 10_000
    assert (np.abs(got - exact) <= 2.0**-22 * exact)[normal].all()
    large = np.array([2.0**127, -(2.0**127), 2.0**126, np.inf], np.float32)
    over = np.array([1.0, 3.0, 2.0**100, 5.0], np.float32)
    (bits,) = evaluate_all(
        [f"div.{word}.f32 %r0, %r1, %r2"], {"r1": over.view(np.uint32), "r2": large.view(np.uint32)}
    )
    got = bits.astype(np.uint32).view(np.float32)
    if "approx" in word:
        assert got.tolist() == [0.0, 0.0, 2.0**-26, 0.0]
    elif "ftz" not in word:
        assert got.tolist() == [2.0**-127, -3 * 2.0**-127, 2.0**-26, 0.0]


# instruction, format, function, largest relative error, largest absolute error
NARROW: list[tuple[str, str, Function, float, float]] = [
    ("ex2.approx.f16", "f16", np.exp2, 2.0**-9.9, 2.0**-25),
    ("ex2.approx.ftz.bf16", "bf16", np.exp2, 2.0**-7, 0),
    ("tanh.approx.f16", "f16", np.tanh, 0, 2.0**-10.987),
    ("tanh.approx.bf16", "bf16", np.tanh, 2.0**-8, 0),
]


@pytest.mark.parametrize("case", NARROW, ids=lambda c: c[0])
def test_all_narrow_codes(case: tuple[str, str, Function, float, float]) -> None:
    line, form, function, relative, absolute = case
    x = halves(form)
    codes = np.arange(1 << 16, dtype=np.uint64)
    packed = line.replace(form, form + "x2")
    single, pair = evaluate_all(
        [f"{line} %h0, %h1", f"{packed} %r0, %r1"],
        {"h1": codes, "r1": codes << np.uint64(16) | codes[::-1]},
    )
    np.testing.assert_array_equal(pair, single << np.uint64(16) | single[::-1])
    got = x[single.astype(np.int64)]
    with np.errstate(over="ignore", invalid="ignore"):
        exact = function(x)
        largest = 65520.0 if form == "f16" else 3.3961e38
        least = 2.0**-14 if form == "f16" else 2.0**-126
        flushed = "ftz" in line
        compared = np.isfinite(x) & (np.abs(exact) < largest)
        compared &= (np.abs(exact) >= least) | (not flushed)
        compared &= (np.abs(x) >= least) | (not flushed)
        error = np.abs(got - exact)
        assert (error <= relative * np.abs(exact) + absolute)[compared].all()
    assert (np.isnan(got) == np.isnan(x)).all()
    assert (single[np.isnan(x)] == 0x7FFF).all()


SPECIALS: dict[str, list[tuple[float, float]]] = {
    "rcp.approx.ftz.f32": [(-np.inf, -0.0), (-0.0, -np.inf), (0.0, np.inf), (np.inf, 0.0),
                           (1e-40, np.inf), (-1e-40, -np.inf)],
    "sqrt.approx.f32": [(-0.0, -0.0), (0.0, 0.0), (np.inf, np.inf), (-1.0, np.nan)],
    "rsqrt.approx.ftz.f32": [(-0.0, -np.inf), (0.0, np.inf), (np.inf, 0.0), (-1.0, np.nan),
                             (1e-40, np.inf), (-1e-40, -np.inf)],
    "ex2.approx.f32": [(-np.inf, 0.0), (1e-40, 1.0), (0.0, 1.0), (np.inf, np.inf)],
    "lg2.approx.f32": [(-0.0, -np.inf), (0.0, -np.inf), (np.inf, np.inf), (-1.0, np.nan)],
    "lg2.approx.ftz.f32": [(1e-40, -np.inf)],
    "sin.approx.f32": [(-0.0, -0.0), (0.0, 0.0), (np.inf, np.nan), (-np.inf, np.nan)],
    "cos.approx.f32": [(-0.0, 1.0), (0.0, 1.0), (np.inf, np.nan)],
    "tanh.approx.f32": [(-np.inf, -1.0), (-0.0, -0.0), (0.0, 0.0), (np.inf, 1.0), (1e-40, 1e-40)],
}  # fmt: skip


@pytest.mark.parametrize("line", SPECIALS)
def test_specials(line: str) -> None:
    x, wanted = (
        np.array(v, np.float32) for v in zip(*SPECIALS[line], (np.nan, np.nan), strict=True)
    )
    got = one(f"{line} %r0, %r1", x).astype(np.float32)
    known = ~np.isnan(wanted)
    np.testing.assert_array_equal(got.view(np.uint32)[known], wanted.view(np.uint32)[known])
    assert (got.view(np.uint32)[~known] == 0x7FFFFFFF).all()


@pytest.mark.parametrize("name", ["rcp", "rsqrt"])
def test_gross_double(name: str) -> None:
    """.approx.ftz.f64 takes and gives numbers of 20 fraction bits."""
    x = np.random.default_rng(5).uniform(1e-3, 1e3, 2000)
    (bits,) = evaluate_all([f"{name}.approx.ftz.f64 %q0, %q1"], {"q1": x.view(np.uint64)})
    assert not (bits & np.uint64(0xFFFFFFFF)).any()
    cut = (x.view(np.uint64) & np.uint64(0xFFFFFFFF00000000)).view(np.float64)
    exact = 1 / (cut if name == "rcp" else np.sqrt(cut))
    assert (np.abs(bits.view(np.float64) - exact) <= 2.0**-20 * exact).all()
    ends = np.array([0.0, -0.0, np.inf, 1e-310, -1e-310, np.nan])
    (bits,) = evaluate_all([f"{name}.approx.ftz.f64 %q0, %q1"], {"q1": ends.view(np.uint64)})
    found = bits.view(np.float64)
    np.testing.assert_array_equal(found, [np.inf, -np.inf, 0, np.inf, -np.inf, np.nan])
