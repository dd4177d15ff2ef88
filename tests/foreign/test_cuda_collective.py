"""Threads of a block and of a grid together, as nvcc compiles CUDA C++ and libcu++."""

from __future__ import annotations

import numpy as np
import pytest

from .judge import cuda, execute, ulps

f32, i32 = np.float32, np.int32


@pytest.fixture(scope="module")
def ptx() -> str:
    return cuda("collective", "sm_80")


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


@pytest.mark.parametrize("schedule", [None, 1])
def test_a_sum(ptx: str, rng: np.random.Generator, schedule: int | None) -> None:
    x, out = rng.integers(-9, 9, 3000).astype(f32), np.zeros(1, f32)
    execute(ptx, "total", [x, out, 3000], grid=(5,), schedule=schedule)
    assert out[0] == x.sum()  # small integers: no rounding


def test_softmax(ptx: str, rng: np.random.Generator) -> None:
    x = (rng.normal(size=(5, 250)) * 4).astype(f32)
    out = np.zeros_like(x)
    execute(ptx, "softmax", [x, out, 250], grid=(5,))
    difference = (x - x.max(1, keepdims=True)).astype(float)
    e = np.exp(difference)
    # expf: 2 ulp in numerator and sum; 2 + 5 + 2 sums of rounding 1/2; the division: 1/2
    assert ulps(out, e / e.sum(1, keepdims=True)) <= 2 * (2 + 2 + 9 * 0.5 + 0.5)


def test_layer_norm(ptx: str, rng: np.random.Generator) -> None:
    x = (rng.normal(size=(5, 250)) + 3).astype(f32)
    weight, bias = rng.normal(size=(2, 250)).astype(f32)
    out = np.zeros_like(x)
    arguments = [x, weight, bias, out, 250, 1e-5]
    execute(ptx, "layer_norm", arguments, grid=(5,), shared=1000)
    e = x.astype(float)
    scale = 1 / np.sqrt(e.var(1, keepdims=True) + 1e-5)
    expected = (e - e.mean(1, keepdims=True)) * scale * weight + bias
    # the mean is off by 9 roundings of sums up to 250 * 4, the result by that times the scale
    mean_error = 9 * 2**-24 * np.abs(e).sum(1, keepdims=True) / 250
    bound = (mean_error + 12 * 2**-24 * np.abs(e)) * scale * np.abs(weight) + 2**-22 * (
        np.abs(expected) + np.abs(bias)
    )
    assert (np.abs(out - expected) <= bound).all()


@pytest.mark.parametrize("schedule", [None, 1, 2])
def test_a_scan_over_blocks(ptx: str, rng: np.random.Generator, schedule: int | None) -> None:
    x = rng.integers(-99, 99, 2048).astype(i32)
    out, totals, ready = np.zeros_like(x), np.zeros(4, i32), np.zeros(4, i32)
    execute(ptx, "scan", [x, out, totals, ready], grid=(4,), schedule=schedule)
    assert (out == np.cumsum(x)).all()


def test_transpose(ptx: str, rng: np.random.Generator) -> None:
    x = rng.normal(size=(50, 70)).astype(f32)
    out = np.zeros((70, 50), f32)
    execute(ptx, "transpose", [x, out, 50, 70], grid=(3, 2), block=(32, 8))
    assert (out == x.T).all()


def test_histogram(ptx: str, rng: np.random.Generator) -> None:
    x, out = rng.integers(0, 200, 5001).astype(np.uint8), np.zeros(256, np.uint32)
    execute(ptx, "histogram", [x, out, 5001], grid=(3,))
    assert (out == np.bincount(x, minlength=256)).all()


def test_a_sorting_network(ptx: str, rng: np.random.Generator) -> None:
    x = rng.integers(-999, 999, (2, 128)).astype(i32)
    expected = np.sort(x, axis=1)
    execute(ptx, "bitonic", [x], grid=(2,), shared=512)
    assert (x == expected).all()


def test_votes(ptx: str, rng: np.random.Generator) -> None:
    x, out = rng.integers(0, 100, 64).astype(i32), np.zeros((64, 8), np.uint32)
    x[40:] = 99
    execute(ptx, "votes", [x, out], block=(64,))
    bits = 1 << np.arange(32, dtype=np.uint64)
    for warp, values in enumerate(x.reshape(2, 32)):
        for lane, v in enumerate(values):
            odd = int(bits[values % 2 == 1].sum())
            same = int(bits[values % 7 == v % 7].sum())
            third = np.flatnonzero(values % 3 == 0)
            assert [int(w) for w in out[warp * 32 + lane]] == [
                odd,
                int((values > 90).any()) | 2,
                same,
                0xFFFFFFFF ^ 1,
                int(values.sum()),
                int(values.min() - 50) & 0xFFFFFFFF,
                int(np.bitwise_xor.reduce(values)),
                int((third < lane).sum()) | len(third) << 8 if v % 3 == 0 else 0,
            ]


def test_cooperative_groups(ptx: str, rng: np.random.Generator) -> None:
    x, out = rng.integers(0, 100, 64).astype(i32), np.zeros((64, 6), i32)
    execute(ptx, "groups", [x, out], block=(64,))
    tiles = x.reshape(8, 8)
    shifted = np.concatenate([tiles[:, 3:], tiles[:, 5:]], axis=1)  # beyond the tile: one's own
    odd = [np.flatnonzero(w & 1) for w in x.reshape(2, 32)]
    for i, v in enumerate(x):
        tile, lane, here = i // 8, i % 8, odd[i // 32]
        assert [int(w) for w in out[i]] == [
            tiles[tile].sum(),
            shifted[tile, lane],
            tiles[tile, : lane + 1].sum(),
            tiles[tile].max(),
            (here < i % 32).sum() + 100 * len(here) if v & 1 else -1,
            tile * 1000 + lane + (100000 if (tiles[tile] > 95).any() else 0),
        ]


@pytest.fixture(scope="module", params=["sm_80", "sm_90a"])
def libcu(request: pytest.FixtureRequest) -> str:
    return cuda("libcu", request.param)


@pytest.mark.parametrize("schedule", [None, 1])
def test_a_pipeline(libcu: str, rng: np.random.Generator, schedule: int | None) -> None:
    x, y = rng.integers(-9, 9, (2, 5, 256)).astype(f32), np.zeros((2, 256), f32)
    execute(libcu, "pipelined", [x, y, 5], grid=(2,), block=(256,), schedule=schedule)
    assert (y == (x * np.arange(1, 6)[:, None]).sum(1)).all()


def test_arrival_and_wait_apart(libcu: str, rng: np.random.Generator) -> None:
    x, out = rng.integers(0, 999, (2, 128)).astype(i32), np.zeros((2, 3, 128), i32)
    execute(libcu, "split", [x, out], grid=(2,))
    for r in range(3):
        assert (out[:, r] == x[:, ::-1] + r + r * np.arange(128)).all()


def test_a_copy_that_a_barrier_completes(libcu: str, rng: np.random.Generator) -> None:
    x, out = rng.integers(0, 999, (2, 64, 4)).astype(i32), np.zeros((2, 64, 4), i32)
    # libcu++ has no fence between the barrier's initialisation and TMA, which signals it
    execute(libcu, "copied", [x, out], grid=(2,), block=(64,), letters=["proxy-fence"])
    assert (out == x[:, ::-1]).all()


@pytest.mark.parametrize("schedule", [None, 1])
def test_the_last_block(libcu: str, rng: np.random.Generator, schedule: int | None) -> None:
    x = rng.integers(-9, 9, 1000).astype(f32)
    parts, count, out = np.zeros(5, f32), np.zeros(1, np.uint32), np.zeros(1, f32)
    arguments = [x, parts, count, out, 1000]
    execute(libcu, "last_block", arguments, grid=(5,), block=(64,), schedule=schedule)
    assert (out[0], count[0]) == (x.sum(), 5)
