"""A step of a program takes as much work in a long program as in a short one.

Work is counted in calls of functions, which no other process changes. `benchmarks/growth.py`
measures times.
"""

from __future__ import annotations

import cProfile
import gc
from collections.abc import Callable
from pstats import Stats
from typing import cast

import pytest

import fragir
from fragir import Tile, f32


def loops(count: int) -> str:
    """Loops behind each other, each with a tile that it carries."""
    with fragir.kernel("loops", warps=(4, 1)) as k:
        x, y = k.memory("x", f32, ("m", 512)), k.memory("y", f32, ("m",))
        k.grid("m / 16")
        row = k.block_id() * 16
        total: Tile = k.fill(0, (16,), f32)
        for _ in range(count):
            with k.loop(0, 512, 128, s=total) as loop:
                loop.s = loop.s + k.load(x, (row, loop.index), shape=(16, 128)).sum(1)
            total = loop.s
        k.store(total, y, (row,))
    return k.mlir


def rows(count: int) -> str:
    """Sums of rows that lie across the lanes of a warp, through shared memory of its own."""
    with fragir.kernel("rows", warps=(4, 1)) as k:
        x = k.memory("x", f32, (16, 256))
        t = k.load(x, (0, 0), shape=(16, 256))
        for _ in range(count):
            t = t - t.sum(1, keepdims=True)
        k.store(t, x, (0, 0))
    return k.mlir


def elementwise(count: int) -> str:
    """Operations of linalg that one kernel computes."""
    memory = "memref<256xf32>"
    each = f"  linalg.add ins(%x, %y : {memory}, {memory}) outs(%y : {memory})\n"
    return f"func.func @f(%x: {memory}, %y: {memory}) {{\n{each * count}  func.return\n}}\n"


def calls(text: str) -> int:
    """How many functions are called to compile a program."""
    profile = cProfile.Profile()
    gc.disable()
    try:
        profile.runcall(fragir.compile, text, target="sm_80")
    finally:
        gc.enable()
    return cast(int, Stats(profile).total_calls)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("write", "steps"),
    [(loops, (2, 8, 16)), (rows, (2, 8, 24)), (elementwise, (4, 32, 64))],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_a_step_costs_the_same(write: Callable[[int], str], steps: tuple[int, int, int]) -> None:
    calls(write(1))  # what is imported and kept from then on
    few, more, many = (calls(write(count)) for count in steps)
    early = (more - few) / (steps[1] - steps[0])
    late = (many - more) / (steps[2] - steps[1])
    assert late < 1.01 * early
