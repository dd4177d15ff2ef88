"""References over elements: the same function written in two ways, and functions that differ."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy
import pytest

from fragir.algebra import UnknownFunctionError, Values, spelling
from fragir.algebra.values import SPELLINGS

np: Any = numpy  # its functions over values give values, which its types do not say
RNG = np.random.default_rng(0)


def some(*shape: int) -> Values:
    return Values.random(RNG.normal(size=shape), RNG)


def equal(a: Values, b: Values) -> bool:
    """Wherever no root of what is no square says nothing."""
    return bool(((a.p == b.p) | a.doubt | b.doubt).all()) and a.shape == b.shape


X, Y, Z = some(4, 6), some(6, 5), some(4, 6)
ROW = some(6)

SAME: dict[str, Callable[[], tuple[Any, Any]]] = {
    "sums in any order": lambda: (X.sum(1), sum((X[:, i] for i in (3, 0, 5, 1, 4, 2)), 0.0)),
    "distributive": lambda: (X * (Z + ROW), X * ROW + Z * X),
    "a product by blocks": lambda: (X @ Y, X[:, :4] @ Y[:4] + X[:, 4:] @ Y[4:]),
    "einsum": lambda: (np.einsum("ij,jk->ki", X, Y), (X @ Y).T),
    "batches": lambda: (
        np.matmul(np.stack([X, Z]), Y)[1],
        Z @ Y,
    ),
    "division": lambda: (X / Z * Z, X),
    "softmax, less the largest": lambda: (
        np.exp(X) / np.exp(X).sum(-1, keepdims=True),
        np.exp(X - X.max(-1, keepdims=True))
        / np.exp(X - X.max(-1, keepdims=True)).sum(-1, keepdims=True),
    ),
    "powers of two add up": lambda: (np.exp2(X + Z), np.exp2(X) * np.exp2(Z)),
    "of whole numbers": lambda: (np.exp2(X + 3.0), np.exp2(X) * 8.0),
    "variance": lambda: (X.var(1), np.mean(X * X, 1) - np.mean(X, 1) ** 2),
    "roots": lambda: (np.sqrt(X.var(1)) ** 2, X.var(1)),
    "roots and their inverses": lambda: (X.var(1) * (1 / np.sqrt(X.var(1))), np.sqrt(X.var(1))),
    "relu": lambda: (np.maximum(X, 0.0), np.where(X > 0, X, 0.0)),
    "absolute": lambda: (np.abs(X), np.maximum(X, -X)),
    "what is named is of its argument": lambda: (np.tanh(X + Z), np.tanh(Z + X)),
    "masks": lambda: (np.tril(X), np.where(np.tri(4, 6, dtype=bool), X, 0.0)),
    "padding": lambda: (np.pad(X, ((1, 0), (0, 2)))[1:, :6], X),
    "concatenation": lambda: (np.concatenate([X, Z], 1)[:, 6:], Z),
    "assignment": lambda: (assigned(), np.concatenate([X[:1], Z[1:]])),
    "outer": lambda: (np.outer(ROW, ROW)[2], ROW[2] * ROW),
    "cumsum": lambda: (np.cumsum(X, 1)[:, -1], X.sum(1)),
    "clip": lambda: (np.clip(X, -1, 1), np.minimum(np.maximum(X, -1.0), 1.0)),
    "negative": lambda: (-(X - Z), Z - X),
    "powers": lambda: (X**3, X * X * X),
    "minus infinity masks": lambda: (
        np.exp2(np.where(X > 0, X, -np.inf)),
        np.where(X > 0, np.exp2(X), 0.0),
    ),
}
OTHER: dict[str, Callable[[], tuple[Any, Any]]] = {
    "a constant that is near": lambda: (X * 0.1, X * float(np.float32(0.1))),
    "an element left out": lambda: (X.sum(1), X[:, :5].sum(1)),
    "columns in another order": lambda: (X @ Y, X @ Y[::-1]),
    "a power of another base": lambda: (np.exp(X), np.exp2(X)),
    "a root left out": lambda: (X / np.sqrt(X.var(1, keepdims=True)), X / X.var(1, keepdims=True)),
    "another name": lambda: (np.tanh(X), np.sin(X)),
    "epsilon": lambda: (1 / (X.var(1) + 1e-5), 1 / (X.var(1) + 2e-5)),
}


OF_NUMPY: list[Callable[[Any], Any]] = [
    lambda x: np.exp(x - np.max(x, -1, keepdims=True)),
    lambda x: np.einsum("ij->ji", x),
    lambda x: np.std(x, axis=0) + np.prod(x, axis=0),
    lambda x: np.moveaxis(x[None], 0, -1).squeeze(-1),
    lambda x: np.stack([x, x * 2.0]).reshape(-1),
    lambda x: np.log(x * x + 1.0),
    lambda x: np.sum(np.square(x)) / np.size(x),
    lambda x: x.astype(np.float32) @ x.T,
]
REFUSED: list[Callable[[Any], Any]] = [
    *(np.arctanh, np.linalg.inv, np.fft.fft, float, np.asarray, np.add.accumulate),
    lambda x: x**0.3,
]


def assigned() -> Values:
    found = np.zeros_like(X)
    found[0] = X[0]
    found[1:] = Z[1:]
    return found


@pytest.mark.parametrize("name", SAME)
def test_the_same_function(name: str):
    one, other = SAME[name]()
    assert equal(one, other)
    np.testing.assert_allclose(one.real, other.real, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", OTHER)
def test_other_functions_differ_everywhere(name: str):
    one, other = OTHER[name]()
    assert ((one.p != other.p) | one.doubt | other.doubt).all()
    assert (one.p != other.p).any()


@pytest.mark.parametrize("function", OF_NUMPY)
def test_numbers_are_those_of_numpy(function: Callable[[Any], Any]):
    np.testing.assert_allclose(function(X).real, function(X.real), rtol=1e-5, atol=1e-6)


def test_what_depends_on_inputs_is_known():
    found = np.concatenate([X[0], Values.of(np.ones(6))])
    assert found.data.tolist() == [True] * 6 + [False] * 6
    assert (X * 0.0).data.all()


def test_spellings_of_log2e_differ():
    found: list[Values] = []
    for name in SPELLINGS:
        with spelling(name):
            found.append(np.exp(X))
    for i, one in enumerate(found):
        for other in found[:i]:
            assert (one.p != other.p).all()


@pytest.mark.parametrize("function", REFUSED)
def test_what_has_no_meaning_is_refused(function: Callable[[Any], Any]):
    with pytest.raises(UnknownFunctionError):
        function(X)
