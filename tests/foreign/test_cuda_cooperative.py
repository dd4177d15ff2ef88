"""Groups of several warps, and of a whole grid, as nvcc compiles cooperative groups."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from fragir.emulator import EmulationError, run

from .judge import cuda, execute

f32, i32 = np.float32, np.int32


@pytest.fixture(scope="module")
def ptx() -> str:
    return cuda("cooperative", "sm_80")


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


@pytest.mark.parametrize("schedule", [None, 1])
@pytest.mark.parametrize("size", [64, 128, 256])
def test_tiles(ptx: str, rng: np.random.Generator, size: int, schedule: int | None) -> None:
    x, out = rng.integers(0, 100, 512).astype(i32), np.zeros((512, 4), i32)
    x[:size] = 7
    x[300] = 150
    shared = 1024 if size == 128 else 0
    # not checked: lanes read what one of them acquired before a shuffle, which orders no memory
    launch = partial(run, ptx, f"tiles{size}", grid=(2,), block=(256,), shared=shared)
    launch(arguments=[x, out], schedule=schedule)
    tiles = x.reshape(-1, size)
    sums = tiles.sum(1, keepdims=True)
    last = tiles.max(1, keepdims=True) + 10 * (tiles > 99).any(1, keepdims=True)
    expected = [
        np.roll(tiles, -1, 1),
        np.broadcast_to(sums, tiles.shape),
        tiles.cumsum(1) - tiles,
        np.broadcast_to(last + 100 * tiles[:, -1:], tiles.shape),
    ]
    for column, values in enumerate(expected):
        assert out[:, column].tolist() == values.ravel().tolist(), column


@pytest.mark.parametrize(("blocks", "threads"), [(3, 64), (72, 128)])
def test_grids_wait(ptx: str, rng: np.random.Generator, blocks: int, threads: int) -> None:
    """72 blocks of 4 warps are more than are on the machine together otherwise."""
    total = blocks * threads
    x, out = rng.integers(0, 100, total).astype(i32), np.zeros(total, i32)
    expected, step = x.copy(), 1
    while step < total:
        expected, step = expected + np.roll(expected, -step), 2 * step
    run(ptx, "sums", arguments=[x, out], grid=(blocks,), block=(threads,), check=blocks < 10)
    assert out.tolist() == np.roll(expected, -37).tolist()


def test_jacobi(ptx: str, rng: np.random.Generator) -> None:
    a = rng.integers(0, 64, 300).astype(f32)
    b = a.copy()
    expected = a.copy()
    for _ in range(5):
        expected[1:-1] = f32(0.5) * (expected[:-2] + expected[2:])
    execute(ptx, "jacobi", [a, b, 300, 5], grid=(3,), block=(32,))
    assert b.tolist() == expected.tolist()


def test_validity(ptx: str) -> None:
    out = np.zeros(2, i32)
    execute(ptx, "valid", [out], grid=(3,), block=(1,))
    assert out.tolist() == [1, 3]


def test_plain_launches_have_no_workspace(ptx: str) -> None:
    out = np.zeros(192, i32)
    with pytest.raises(EmulationError, match="the kernel trapped"):
        run(ptx, "sums", grid=(2,), block=(96,), arguments=[out, out.copy()], cooperative=False)


def test_grids_that_do_not_fit(ptx: str) -> None:
    """64 warps of 132 multiprocessors: 264 blocks of 1024 threads."""
    arguments = [np.zeros(265 * 1024, i32)] * 2
    with pytest.raises(EmulationError, match="265 of 32 warps are more than the 264 of 132"):
        run(ptx, "sums", grid=(265,), block=(1024,), arguments=arguments)
