"""Tiles and products of any extents over any warps: what the threads do not divide is right too."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fragir
from benchmarks.sweeps.odd_tiles import OPERATIONS, odd_program
from benchmarks.sweeps.tile_programs import check
from fragir.emulator.report import Finding

PRODUCTS = [  # warps, M x N x K, what is said
    ((4, 1), (16, 16, 16), "shared by 2 of 4 warps"),
    ((2, 2), (16, 8, 32), "shared by 1 of 4 warps"),
    ((4, 1), (16, 64, 16), ""),
    ((2, 1), (4, 8, 16), "padded to 16x8x16"),
    ((1, 1), (17, 5, 3), "padded to 32x8x8"),
]


@pytest.mark.parametrize(("warps", "sizes", "words"), PRODUCTS)
def test_products_smaller_than_their_warps_or_instruction(
    warps: tuple[int, int], sizes: tuple[int, int, int], words: str
) -> None:
    m, n, k_ = sizes
    with fragir.kernel("product", warps=warps) as k:
        a, b = k.memory("a", fragir.f16, (m, k_)), k.memory("b", fragir.f16, (k_, n))
        c, rows = k.memory("c", fragir.f32, (m, n)), k.memory("rows", fragir.f32, (m,))
        d = k.mma(k.load(a, (0, 0), shape=(m, k_)), k.load(b, (0, 0), shape=(k_, n)))
        k.store(d, c, (0, 0))
        k.store(d.sum(1), rows, (0,))
    kernel = k.compile("sm_80")
    random = np.random.default_rng(0)
    left, right = (random.integers(-4, 5, s).astype("f2") for s in ((m, k_), (k_, n)))
    result, sums = np.zeros((m, n), "f4"), np.zeros(m, "f4")
    report = kernel(left, right, result, sums, on="emulator", check=True)
    assert not list[Finding](report.findings)
    assert (result == left.astype("f4") @ right.astype("f4")).all()
    assert (sums == result.sum(1)).all()
    assert any(words in note for note in kernel.notes) if words else not kernel.notes


@pytest.mark.parametrize("operation", sorted(OPERATIONS))
def test_any_operation_on_odd_tiles(operation: str) -> None:
    """A sample of the sweep `odd-tiles`."""
    what, program = odd_program(len(operation), operation)
    verdict = check(program, 3, assemble=operation in ("reduce", "ticket", "slice"))
    assert verdict.refusal is None, what
    assert verdict.findings == [], what


def test_tiles_that_threads_do_not_divide_take_few_registers() -> None:
    """33 x 33 over 128 threads: 18 elements a lane, not 1089."""
    with fragir.kernel("twice", warps=(4, 1)) as k:
        x: Any = k.memory("x", fragir.f32, (33, 33))
        k.store(k.load(x, (0, 0), shape=(33, 33)) * 2, x, (0, 0))
    assert k.compile("sm_80").ptx.count("ld.global") <= 18
