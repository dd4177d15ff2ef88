"""Bounds on rounding hold for computations in lower precision, and are narrow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fragir.judge.rounding import Rounded, UnboundedError, Working, as_rounded


def softmax(x: Any) -> Any:
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def layer_norm(x: Any) -> Any:
    apart = x - np.mean(x, axis=-1, keepdims=True)
    return apart / np.sqrt(np.var(x, axis=-1, keepdims=True) + 1e-5)


def product(x: Any) -> Any:
    return x @ x.T


def attention(x: Any) -> Any:
    scores = np.where(np.tril(np.ones((x.shape[0], x.shape[0]), bool)), (x @ x.T) * 0.125, -np.inf)
    return softmax(scores) @ x


def mixed(x: Any) -> Any:
    y = np.einsum("ij,kj->ik", x, np.abs(x)) - 2 * x.sum()
    return np.concatenate([np.tanh(y), np.maximum(y, 0) ** 2, y / (1 + np.exp2(-x[:, :1]))])


FUNCTIONS: list[Callable[[Any], Any]] = [softmax, layer_norm, product, attention, mixed]


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize(("name", "kind"), [("f32", np.float32), ("f16", np.float16)])
@pytest.mark.parametrize("rounding", ["any", "nearest"])
@given(seed=st.integers(0, 2**32 - 1))
def test_a_computation_of_that_format_is_within(
    function: Callable[[Any], Any], name: str, kind: Any, rounding: str, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(9, 17)).astype(kind)
    with np.errstate(all="ignore"):
        exact = function(x.astype(np.float64))
        found = np.asarray(function(x)).astype(np.float64)
        rounded = function(as_rounded(x, Working(name, name, rounding)))
    assert isinstance(rounded, Rounded)
    assert np.allclose(rounded.value, exact, rtol=1e-12, atol=0, equal_nan=True)
    assert (np.abs(found - exact) <= rounded.bound).all()


def test_bounds_are_narrow() -> None:
    x = np.random.default_rng(0).normal(size=(64, 256))
    for function, most in ((softmax, 1e-4), (product, 1e-3), (layer_norm, 2e-3)):
        rounded = function(as_rounded(x, Working("f32")))
        assert rounded.bound.max() <= most * np.abs(rounded.value).max()


def test_to_the_nearest_is_half_as_far() -> None:
    x = np.random.default_rng(0).normal(size=100)
    either, nearest = (
        (as_rounded(x, Working("f32", rounding=how)) + 1.0).bound for how in ("any", "nearest")
    )
    assert np.allclose(either, 2 * nearest, rtol=1e-6, atol=0)


def test_to_the_nearest_nothing_is_flushed() -> None:
    x = np.array([1e-40])
    either, nearest = (
        (as_rounded(x, Working("f32", rounding=how)) * 2.0).bound for how in ("any", "nearest")
    )
    assert either > 2e-40 > nearest


UNKNOWN: list[Callable[[Any], Any]] = [
    np.linalg.inv,
    lambda x: np.sort(x),
    lambda x: np.where(np.exp(x) > np.exp(x) * 1.0000001, x, 0),
    lambda x: bool(x),
    lambda x: np.asarray(x),
    lambda x: np.log(x - x),
    lambda x: x**0.3,
    lambda x: np.frexp(x),
]


@pytest.mark.parametrize("function", UNKNOWN)
def test_what_no_bound_is_known_of(function: Callable[[Any], Any]) -> None:
    x = as_rounded(np.random.default_rng(0).normal(size=(4, 4)), Working("f32"))
    with pytest.raises((UnboundedError, TypeError)):
        function(x)


def test_a_divisor_that_may_be_zero_has_no_bound() -> None:
    x = as_rounded(np.array([3.0]), Working("f32"))
    with np.errstate(divide="ignore"):
        assert np.isinf((x / (x / 3 - 1)).bound).all()
