"""The kernels of examples/attention: against numpy, on every machine that they are for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import fragir
from tests.examples.judged import EXAMPLES, judged, script

Array = npt.NDArray[Any]
FOLDER = EXAMPLES / "attention"


def scores(q: Array, k: Array, causal: int) -> Array:
    """Q K^T / sqrt(d) of every query head, -inf where a query does not see the key."""
    h, m, d = q.shape
    g, n, _ = k.shape
    shared = np.repeat(k, h // g, axis=0) if g else k
    found = np.einsum("hmd,hnd->hmn", q, shared) / np.sqrt(d)
    if causal:
        i, j = np.indices((m, n))
        found[:, j > i + n - m] = -np.inf
    return found


def sums(q: Array, k: Array, causal: int) -> Array:
    """The logarithm of the sum of e^score over every row; -inf where it is empty."""
    s = scores(q, k, causal)
    top = s.max(-1, initial=-1e30)
    with np.errstate(divide="ignore"):
        return top + np.log(np.exp(s - top[..., None]).sum(-1))


def weights(q: Array, k: Array, causal: int) -> Array:
    """The softmax; zeros where a query sees no key."""
    s = scores(q, k, causal)
    p = np.exp(s - s.max(-1, initial=-1e30)[..., None])
    total = p.sum(-1, keepdims=True)
    return p / np.where(total == 0, 1, total)


def attention(q: Array, k: Array, v: Array, causal: int) -> Array:
    h, g = len(q), len(v)
    return weights(q, k, causal) @ np.repeat(v, h // g, axis=0)


FORWARD: Mapping[str, Callable[..., Array]] = {"o": attention, "lse": sums}


def sized(h: int, g: int, m: int, n: int) -> dict[str, int]:
    return {"h": h, "g": g, "m": m, "n": n}


# heads, heads of keys, queries, keys, causal
@pytest.mark.parametrize(
    ("h", "g", "m", "n", "causal"),
    [(1, 1, 1, 1, 1), (2, 1, 70, 97, 1), (2, 2, 3, 0, 0), (1, 1, 0, 5, 1)],
)
def test_forward(h: int, g: int, m: int, n: int, causal: int) -> None:
    sizes = sized(h, g, m, n)
    judged(FOLDER / "forward.mlir", sizes, FORWARD, given={"causal": causal})


# more queries than keys: the first of them see none
@pytest.mark.parametrize(("h", "g", "m", "n", "causal"), [(2, 1, 40, 33, 0), (1, 1, 70, 35, 1)])
def test_forward_in_python(h: int, g: int, m: int, n: int, causal: int) -> None:
    text = script("attention/forward.py")["k"].mlir
    judged(text, sized(h, g, m, n), FORWARD, given={"causal": causal})


@pytest.mark.parametrize(("m", "n"), [(130, 70), (1, 1)])
def test_forward_by_wgmma(m: int, n: int) -> None:
    path = FOLDER / "forward_wgmma.mlir"
    judged(path, sized(1, 1, m, n), FORWARD, "sm_90a", given={"causal": 1})


@pytest.mark.parametrize(("d", "target"), [(64, "sm_90a"), (128, "sm_80")])
def test_forward_of_other_heads(d: int, target: str) -> None:
    kernel = script("attention/forward.py")["forward"](d, target)
    judged(kernel.mlir, sized(2, 1, 5, 67), FORWARD, target, given={"causal": 1})


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("d", [64, 128])
def test_nothing_is_between_the_products(d: int, target: str) -> None:
    kernel = script("attention/forward.py")["forward"](d, target)
    found = fragir.explain_layouts(kernel.mlir, target=target).conversions
    assert [(x.cost, x.steps) for x in found if x.name == "%p"] in ([], [(0, "nothing")])
    # two exchanges of the largest and of the sum in each of two rows
    assert kernel.compile().ptx.count("shfl.sync") == 8
