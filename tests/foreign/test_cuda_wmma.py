"""The wmma interface of the CUDA toolkit, as nvcc compiles it."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from .judge import Array, cuda, execute

M, N, K = 32, 48, 80
f16, f32, i32 = np.float16, np.float32, np.int32


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def product(
    rng: np.random.Generator, entry: str, kind: Any, out: Any, *, columns: bool, scale: float
) -> None:
    """Small integers, so that the result is exact; B by rows or by columns."""
    a, b = (rng.integers(-3, 4, shape).astype(kind) for shape in ((M, K), (K, N)))
    c = np.zeros((M, N), out)
    given: Array = np.ascontiguousarray(b.T) if columns else b
    grid = (N // 16, M // 16)
    execute(cuda("wmma", "sm_80"), entry, [a, given, c, N, K], grid=grid, block=(32,))
    assert (c == scale * (a.astype(f32) @ b.astype(f32))).all()


def test_halves(rng: np.random.Generator) -> None:
    product(rng, "gemm_f16", f16, f32, columns=False, scale=0.5)
    product(rng, "gemm_f16_f16", f16, f16, columns=True, scale=2)


def test_bytes(rng: np.random.Generator) -> None:
    product(rng, "gemm_s8", np.int8, i32, columns=True, scale=3)


def test_bfloats(rng: np.random.Generator) -> None:
    product(rng, "gemm_bf16", ml_dtypes.bfloat16, f32, columns=True, scale=1)


def test_tf32_through_shared_memory(rng: np.random.Generator) -> None:
    """Added to C, which lies by columns."""
    a, b, c = (rng.integers(-3, 4, s).astype(f32) for s in ((M, K), (K, N), (N, M)))
    expected = c + (a @ b).T
    grid = (N // 16, M // 16)
    arguments = [a, b, c, M, N, K]
    execute(cuda("wmma", "sm_80"), "gemm_tf32", arguments, grid=grid, block=(32,))
    assert (c == expected).all()
