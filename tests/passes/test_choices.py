"""Choices of the lowering that change no result: how fragments are loaded, what is deferred."""

from __future__ import annotations

import pytest

import fragir
from fragir.dialects import frag
from fragir.errors import FragirError
from fragir.passes.lowering.deferred import defers

PRODUCT = """func.func @gemm(%a: memref<128x64xf16>, %b: memref<64x128xf16>,
                %c: memref<128x128xf32>) {{
  frag.matmul %a, %b into %c {} : memref<128x64xf16>, memref<64x128xf16> into memref<128x128xf32>
  func.return
}}"""


def test_four_matrices_are_loaded_at_once() -> None:
    """The A of m16n8k16 is four matrices of 8x8, the B of two products likewise (ISA 9.7.14.5.15).

    A warp with its half of a 128x128 tile in each direction has 4 A and 8 B for each step of K.
    """
    text = PRODUCT.format("{tile = array<i64: 128, 128, 16>, warps = array<i64: 2, 2>}")
    ptx = fragir.compile(text, target="sm_80").ptx
    assert "ldmatrix.sync.aligned.m8n8.x4" in ptx
    for fewer in ("x1", "x2"):
        assert f"ldmatrix.sync.aligned.m8n8.{fewer}" not in ptx
    products = ptx.count("mma.sync.aligned.m16n8k16")
    loads = ptx.count("ldmatrix.sync.aligned.m8n8.x4")
    assert products * (4 + 8 // 2) == loads * 4 * 8


CHAIN = """func.func @f(%a: memref<16x32xf32>, %c: memref<16x32xf32>) {{
  %t = frag.load %a[0, 0] : memref<16x32xf32> -> !frag.tile<16x32xf32>
  %u = frag.map %t : !frag.tile<16x32xf32> -> !frag.tile<16x32xf32> {{
  ^bb0(%x: f32):
    %y = arith.negf %x : f32
    frag.yield %y : f32
  }}
  {}
  func.return
}}"""
STORE = "frag.store %{}, %c[0, 0] : !frag.tile<16x32xf32>, memref<16x32xf32>"
CONVERTED = "%v = frag.convert %u : !frag.tile<16x32xf32> -> !frag.tile<16x32xf32>\n  "


@pytest.mark.parametrize(
    ("rest", "later"),
    [
        (STORE.format("u"), True),
        (STORE.format("u") + "\n  " + STORE.format("t"), False),  # %t is used twice
        (CONVERTED + STORE.format("v"), False),  # a conversion needs the whole tile
        ("frag.barrier\n  " + STORE.format("u"), False),
    ],
)
def test_fragments_are_formed_at_their_store(rest: str, later: bool) -> None:
    module = fragir.parse(CHAIN.format(rest))
    (load,) = [op for op in module.walk() if isinstance(op, frag.LoadOp)]
    assert defers(load) == later


@pytest.mark.parametrize(
    ("tile", "warpgroups", "message"),
    [
        ("64, 20, 16", "1, 3", "N must be a multiple of 24"),  # not what a third of 20 is
        ("64, 20, 16", "1, 1", "20 columns are no multiple of 8"),
    ],
)
def test_columns_that_warpgroups_cannot_share(tile: str, warpgroups: str, message: str) -> None:
    text = PRODUCT.format(f"{{tile = array<i64: {tile}>, warps = array<i64: {warpgroups}>}}")
    with pytest.raises(FragirError, match=message):
        fragir.compile(text, target="sm_90a")
