"""Attention as it is written in examples/: against numpy, and what its layouts cost."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

import fragir
from fragir.passes.placing.explanation import ConversionExplained

EXAMPLE = Path(__file__).parents[2] / "examples/attention/forward.mlir"
Array = npt.NDArray[Any]


def attention(q: Array, k: Array, v: Array) -> Array:
    """softmax(Q K^T / 8) V, query i seeing keys up to i + n - m."""
    m, n = q.shape[1], k.shape[1]
    scores = np.einsum("hmd,hnd->hmn", *(x.astype(np.float64) for x in (q, k))) / 8
    keys, queries = np.indices((m, n))[::-1]
    scores[:, keys > queries + n - m] = -np.inf
    p = np.exp(scores - scores.max(-1, keepdims=True))
    return np.einsum("hmn,hnd->hmd", p / p.sum(-1, keepdims=True), v.astype(np.float64))


def run(kernel: Any, q: Array, k: Array, v: Array) -> Array:
    """The answer, causal."""
    o, lse = np.full(q.shape, np.nan, q.dtype), np.full(q.shape[:2], np.nan, np.float32)
    report = kernel(q, k, v, o, lse, 1, on="emulator", check=True)
    assert report.findings == []
    return o.astype(np.float32)


def inputs(heads: int, m: int, n: int, dtype: Any) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(m + n)
    q, k, v = (rng.standard_normal((heads, size, 64)).astype(dtype) for size in (m, n, n))
    return q, k, v


@pytest.mark.parametrize(("heads", "m", "n"), [(1, 1, 1), (2, 70, 97), (1, 64, 64), (1, 3, 130)])
def test_attention_of_any_lengths(heads: int, m: int, n: int) -> None:
    kernel = fragir.compile(EXAMPLE.read_text(), target="sm_80")
    q, k, v = inputs(heads, m, n, np.float16)
    # P and the answer are rounded to f16
    np.testing.assert_allclose(run(kernel, q, k, v), attention(q, k, v), atol=2**-9)


@pytest.mark.parametrize("target", ["sm_75", "sm_80", "sm_90a"])
def test_attention_on_other_machines(target: str) -> None:
    """m16n8k8 of sm_75 has one layout for A and C, under two names."""
    kernel = fragir.compile(EXAMPLE.read_text(), target=target)
    q, k, v = inputs(1, 40, 70, np.float16)
    np.testing.assert_allclose(run(kernel, q, k, v), attention(q, k, v), atol=2**-9)


def test_the_sums_are_the_next_operand() -> None:
    text = EXAMPLE.read_text()
    kernel = fragir.compile(text, target="sm_80")
    assert kernel.assembled.warnings == []
    assert kernel.assembled.entries["attention"].spill_stores == 0
    # K and V; behind the loop rows of the answer, for wide stores
    assert kernel.assembled.entries["attention"].shared == 2 * 32 * 64 * 2 + 64 * 64 * 2
    # rows of 64x32 scores: two for each lane, four lanes a row, the largest and the sum
    assert kernel.ptx.count("shfl.sync.bfly") == 2 * 2 * 2
    found, answer = explained(text, "sm_80")
    assert (found.name, found.cost, found.steps) == ("%P", 0, "nothing")
    assert (answer.name, answer.trips) == ("%out", 1)


def narrow(text: str) -> str:
    """The same of e4m3: whose accumulators are no operands, unless K is counted otherwise."""
    return text.replace("xf16", "xf8E4M3FN").replace("swizzle = 128", "swizzle = 64")


def test_sums_of_e4m3_are_the_next_operand_in_another_order_of_keys() -> None:
    text = narrow(EXAMPLE.read_text())
    found, answer = explained(text, "sm_89")
    assert found.cost == 0
    assert (answer.name, answer.trips) == ("%out", 1)
    kernel = fragir.compile(text, target="sm_89")
    assert kernel.ptx.count("shfl.sync") == 2 * 2 * 2
    q, k, v = inputs(1, 40, 50, ml_dtypes.float8_e4m3fn)
    np.testing.assert_allclose(run(kernel, q, k, v), attention(q, k, v), atol=0.15)


def explained(text: str, target: str) -> Sequence[ConversionExplained]:
    """The conversions of a program, as its explanation lists them."""
    return fragir.explain_layouts(text, target=target).conversions
