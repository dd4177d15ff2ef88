"""What computes something else than was meant, and is told: a grid that is missing, sm_90."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fragir
from fragir import f16, f32

BLOCKS = """func.func @k(%a: memref<64x64xf32>, %c: memref<64x64xf32>){grid} {{
  %0 = arith.constant 0 : index
  %16 = arith.constant 16 : index
  %b = frag.block_id {dimension}
  %r = arith.muli %b, %16 : index
  %x = frag.load %a[%r, %0] : memref<64x64xf32> -> !frag.tile<16x64xf32>
  frag.store %x, %c[%r, %0] : !frag.tile<16x64xf32>, memref<64x64xf32>
  func.return
}}
"""


@pytest.mark.parametrize(
    ("grid", "dimension", "why"),
    [
        ("", "x", "the kernel has no grid"),
        ("", "z", "the kernel has no grid"),
        (" attributes {frag.grid = #frag.grid<4>}", "x", ""),
        (" attributes {frag.grid = #frag.grid<4>}", "y", "the grid has 1 dimension"),
        (" attributes {frag.grid = #frag.grid<4, 1>}", "y", ""),
        (" attributes {frag.grid = #frag.grid<4, 1>}", "z", "the grid has 2 dimensions"),
        (" attributes {frag.cluster = array<i64: 4, 1, 1>}", "x", ""),
    ],
)
def test_a_block_that_is_always_the_first(grid: str, dimension: str, why: str) -> None:
    """Where the program has no blocks along it; a cluster is a grid of several."""
    target = "sm_90a" if "cluster" in grid else "sm_80"
    text = BLOCKS.format(grid=grid, dimension=dimension)
    kernel = fragir.compile(text, target=target, filename="k.mlir")
    told = [words for words in kernel.remarks if "frag.block_id" in words]
    wanted = f"k.mlir:4:3: frag.block_id {dimension} is always 0 in a call: {why} ("
    assert [words.startswith(wanted) for words in told] == ([True] if why else [])
    if why:
        x, y = np.ones((64, 64), np.float32), np.zeros((64, 64), np.float32)
        kernel(x, y, on="emulator")
        assert (y[16:] == 0).all(), "no other block runs"


def test_the_builder_says_the_same() -> None:
    with fragir.kernel("k", target="sm_80") as k:
        a, c = k.memory("a", f32, (64, 64)), k.memory("c", f32, (64, 64))
        b = k.block_id("x")
        k.store(k.load(a, (b * 16, 0), shape=(16, 64)), c, (b * 16, 0))
    (words,) = k.compile().remarks
    assert words.startswith(f"{__file__}:")
    assert "frag.block_id x is always 0" in words


def product(element: Any, result: Any, target: str) -> list[str]:
    names = {f16: ("f16", "f32"), fragir.f64: ("f64", "f64")}
    a, c = names[element]
    text = f"""func.func @p(%a: memref<64x64x{a}>, %b: memref<64x64x{a}>, %c: memref<64x64x{c}>) {{
  frag.matmul %a, %b into %c
      : memref<64x64x{a}>, memref<64x64x{a}> into memref<64x64x{c}>
  func.return
}}
"""
    return [w for w in fragir.compile(text, target=target).lowering_notes if "wgmma" in w]


@pytest.mark.parametrize("target", ["sm_80", "sm_90", "sm_90a", "sm_100", "sm_120"])
def test_wgmma_wants_the_target_of_exactly_this_machine(target: str) -> None:
    wanted = ["products go to mma.sync on sm_90; sm_90a has wgmma (--target sm_90a)"]
    assert product(f16, f32, target) == (wanted if target == "sm_90" else [])


def test_products_that_wgmma_does_not_know() -> None:
    assert product(fragir.f64, fragir.f64, "sm_90") == []


GRID = """func.func @k(%a: memref<?x?xf32> {frag.sizes = ["m", "n"]},
    %c: memref<?x?xf32> {frag.sizes = ["m", "n"]}) attributes {frag.grid = #frag.grid<m by 16>} {
  %0 = arith.constant 0 : index
  %16 = arith.constant 16 : index
  %b = frag.block_id x
  %r = arith.muli %b, %16 : index
  %x = frag.load %a[%r, %0] : memref<?x?xf32> -> !frag.tile<16x64xf32>
  frag.store %x, %c[%r, %0] : !frag.tile<16x64xf32>, memref<?x?xf32>
  func.return
}
"""


def test_one_block_where_the_program_asks_for_more() -> None:
    kernel = fragir.compile(GRID)
    for rows, grid, wanted in ((64, 1, ["4 x 1 x 1"]), (64, 4, []), (64, 2, []), (16, 1, [])):
        x = np.ones((rows, 64), np.float32)
        report = kernel.launch(grid, None, x, np.zeros_like(x), on="emulator")
        told = [f"one block was launched, the program asks for {words}" for words in wanted]
        assert report.notes == told
    assert kernel(x, np.zeros_like(x), on="emulator").notes == []
