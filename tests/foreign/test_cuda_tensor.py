"""Tensor cores in kernels that nvcc compiled: mma.sync, wmma, wgmma with TMA."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from fragir.emulator import TensorMap

from .judge import Array, cuda, execute

f32, f16, i32 = np.float32, np.float16, np.int32


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def small(rng: np.random.Generator, *shape: int) -> Array:
    """Halves of which every sum of products is exact, in whatever order."""
    return rng.integers(-3, 4, shape).astype(f16)


@pytest.mark.parametrize("sizes", [(64, 64, 32), (100, 72, 104), (1, 8, 8)])
@pytest.mark.parametrize("schedule", [None, 1])
def test_cp_async_ldmatrix_mma(
    rng: np.random.Generator, sizes: tuple[int, int, int], schedule: int | None
) -> None:
    m, n, k = sizes
    a, b, c = small(rng, m, k), small(rng, k, n), np.zeros((m, n), f32)
    grid = (-(-n // 64), -(-m // 64))
    execute(cuda("mma", "sm_89"), "gemm", [a, b, c, m, n, k], grid=grid, schedule=schedule)
    assert (c == a.astype(f32) @ b.astype(f32)).all()


def test_mma_of_random_halves(rng: np.random.Generator) -> None:
    m, n, k = 64, 64, 96
    a, b = rng.normal(size=(m, k)).astype(f16), rng.normal(size=(n, k)).astype(f16).T.copy()
    c = np.zeros((m, n), f32)
    execute(cuda("mma", "sm_89"), "gemm", [a, b, c, m, n, k])
    exact, magnitude = a.astype(float) @ b.astype(float), np.abs(a.astype(float)) @ np.abs(b)
    # 12 blocks of 8 products, each cut at 2^-24 of the largest sum so far, 9 terms a block
    assert (np.abs(c - exact) <= 12 * 9 * 2**-23 * magnitude).all()


def test_mma_of_bytes(rng: np.random.Generator) -> None:
    a, b = (rng.integers(-128, 128, (rows, 96)).astype(np.int8) for rows in (16, 8))
    c = np.zeros((16, 8), i32)
    execute(cuda("mma", "sm_89"), "gemm_s8", [a, b, c, 96], block=(32,))
    assert (c == a.astype(i32) @ b.astype(i32).T).all()
    a, b = (rng.integers(-3, 4, (rows, 96)).astype(ml_dtypes.float8_e4m3fn) for rows in (16, 8))
    d = np.zeros((16, 8), f32)
    execute(cuda("mma", "sm_89"), "gemm_e4m3", [a, b, d, 96], block=(32,))
    assert (d == a.astype(f32) @ b.astype(f32).T).all()


def test_tf32_scores(rng: np.random.Generator) -> None:
    q, k, out = rng.normal(size=(16, 32)), rng.normal(size=(8, 32)), np.zeros((16, 8), f32)
    arguments = [q.astype(f32), k.astype(f32), out, 32]
    execute(cuda("mma", "sm_89"), "scores_tf32", arguments, block=(32,))
    scores = q @ k.T
    e = np.exp(scores - scores.max(1, keepdims=True))
    # each factor is off by 2^-11, so a score by 2^-10 |q| |k|, and a quotient by twice that
    bound = 2.2 * 2**-10 * (np.abs(q) @ np.abs(k).T).max() * (p := e / e.sum(1, keepdims=True))
    assert (np.abs(out - p) <= bound + 1e-6).all()


@pytest.mark.parametrize("asynchrony", ["late", "early", "random"])
def test_wgmma_fed_by_tma(rng: np.random.Generator, asynchrony: str) -> None:
    """Warp specialisation, a ring of three stages, B multicast to the two blocks of a cluster."""
    m, n, k = 250, 200, 328
    a, b, c = small(rng, m, k), small(rng, n, k), np.zeros((m, n), f32)
    maps = TensorMap(a, (128, 64), 128), TensorMap(b, (64, 64), 128)
    execute(
        cuda("hopper", "sm_90a"),
        "gemm",
        [*maps, c, m, n, k],
        grid=(2, 2),
        block=(384,),
        cluster=(1, 2),
        shared=3 * 32768,
        asynchrony=asynchrony,
        schedule=None if asynchrony == "late" else 1,
    )
    assert (c == a.astype(f32) @ b.astype(f32).T).all()


def test_tiles_in_and_out_by_tma(rng: np.random.Generator) -> None:
    x, y = small(rng, 100, 136), small(rng, 100, 136)
    expected = y + 2 * x
    maps = TensorMap(x, (64, 64)), TensorMap(y, (64, 64))
    execute(cuda("hopper", "sm_90a"), "doubled", maps, grid=(3, 2))
    assert (y == expected).all()


@pytest.mark.parametrize("schedule", [None, 1])
def test_distributed_shared_memory(rng: np.random.Generator, schedule: int | None) -> None:
    x, out, total = rng.integers(0, 256, 3001).astype(np.uint8), *np.zeros((2, 256), np.uint32)
    arguments = [x, out, total, 3001]
    hopper = cuda("hopper", "sm_90a")
    execute(
        hopper,
        "cluster_histogram",
        arguments,
        grid=(4,),
        cluster=(4,),
        block=(64,),
        schedule=schedule,
    )
    counts = np.bincount(x, minlength=256)
    assert (out == counts).all()
    assert total[0] == (counts.reshape(4, 64).sum(1) * np.arange(1, 5)).sum()
    assert (total[1:5] == counts[::64]).all()
