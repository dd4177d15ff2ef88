"""Correct kernels as people write them, each with its arguments and what it has to compute."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tests.emulator.mutation import Arguments, Subject

FOLDER = Path(__file__).parent
Array = npt.NDArray[Any]
THREADS = np.arange(64)


def text(name: str) -> str:
    return (FOLDER / f"{name}.ptx").read_text()


def zeros(count: int) -> npt.NDArray[np.uint32]:
    return np.zeros(count, np.uint32)


HOPPER_STEPS = 6


def hopper_arguments() -> Arguments:
    """A of two blocks and two warpgroups, B of both halves of K: core matrices of 8x16 bytes."""
    rng = np.random.default_rng(1)
    a = rng.integers(-3, 4, (2, HOPPER_STEPS, 2, 64, 16)).astype(np.float16)
    b = rng.integers(-3, 4, (HOPPER_STEPS, 8, 16)).astype(np.float16)
    cores_a = a.reshape(2, HOPPER_STEPS, 2, 8, 8, 2, 8).swapaxes(4, 5).copy()
    cores_b = b.reshape(HOPPER_STEPS, 1, 8, 2, 8).swapaxes(2, 3).copy()
    return [cores_a, cores_b, np.zeros((2, 2, 128, 4), np.float32)]


def hopper_result() -> Array:
    cores_a, cores_b, _ = (np.asarray(x, np.float64) for x in hopper_arguments())
    a = cores_a.swapaxes(4, 5).reshape(2, HOPPER_STEPS, 2, 64, 16)
    b = cores_b.swapaxes(2, 3).reshape(HOPPER_STEPS, 8, 16)
    d = np.einsum("rswmk,snk->rwmn", a, b)
    thread = np.arange(128)
    row, column = thread // 32 * 16 + thread % 32 // 4, thread % 4 * 2
    held = [d[..., r, c] for r in (row, row + 8) for c in (column, column + 1)]
    return np.stack(held, axis=-1)


def copies_result() -> Array:
    data = np.arange(5 * 128).reshape(5, 32, 4)[:, ::-1, 1]
    return data.sum(axis=0)


def neighbours() -> Array:
    """What `grid_barrier` leaves: twice, each block adds what the next one has."""
    values = np.arange(4 * 64).reshape(4, 64)
    for _ in range(2):
        values = values + np.roll(values, -1, axis=0)
    return values.ravel()


def _last_block() -> Arguments:
    return [zeros(4 * 64), zeros(1), zeros(64)]


def _ping_pong() -> Array:
    thread = np.arange(256)
    return 4 * (thread // 128 * 128 + 127 - thread % 128) + 6000


#: Every pattern with (index of the argument, what it holds afterwards).
PATTERNS: list[tuple[Subject, int, Callable[[], Array]]] = [
    (
        Subject("last_block", text("last_block"), _last_block, 64, 4),
        2,
        lambda: 4 * THREADS + 600,
    ),
    (
        Subject("spin_lock", text("spin_lock"), lambda: [zeros(1), zeros(1), zeros(4)], 64, 4),
        1,
        lambda: np.array([4 * 64 * 63 // 2]),
    ),
    (
        Subject("scheduler", text("scheduler"), lambda: [zeros(1), zeros(640)], 64, 3),
        1,
        lambda: np.arange(640),
    ),
    (
        Subject("stream_k", text("stream_k"), lambda: [zeros(4 * 64), zeros(4), zeros(64)], 64, 4),
        2,
        lambda: 4 * THREADS + 6000,
    ),
    (
        Subject("look_back", text("look_back"), lambda: [zeros(6), zeros(6)], 32, 6),
        0,
        lambda: np.cumsum(np.arange(6)),
    ),
    (
        Subject("grid_barrier", text("grid_barrier"), lambda: [zeros(256), zeros(1)], 64, 4),
        0,
        neighbours,
    ),
    (
        Subject("epilogue", text("epilogue"), lambda: [zeros(768)], 128),
        0,
        lambda: (1000 * np.arange(6)[:, None] + np.arange(128)).ravel(),
    ),
    (
        Subject("cluster_sum", text("cluster_sum"), lambda: [zeros(256)], 64, 4, 4),
        0,
        lambda: np.tile(6000 + 4 * (63 - THREADS), 4),
    ),
    (
        Subject(
            "copies",
            text("copies"),
            lambda: [np.arange(5 * 128, dtype=np.uint32), zeros(32)],
            64,
        ),
        1,
        copies_result,
    ),
    (Subject("ping_pong", text("ping_pong"), lambda: [zeros(256)], 256), 0, _ping_pong),
    (
        Subject("warp_sum", text("warp_sum"), lambda: [zeros(64)], 64),
        0,
        lambda: np.repeat([31 * 16, 31 * 16 + 1024], 32),
    ),
    (Subject("hopper", text("hopper"), hopper_arguments, 384, 2, 2), 2, hopper_result),
]
