"""What the sizes of a program's arguments are called."""

from __future__ import annotations

from pathlib import Path

import pytest
from xdsl.dialects import func

from fragir import compiler
from fragir.reference.inputs import resolve, slots
from fragir.reference.roles import dimension_names

MATMUL = """
func.func @f(%a: memref<?x?xf16> A, %b: memref<?x?xf16>, %c: memref<?x?xf16> C,
             %bias: memref<?xf16>, %scale: memref<?x1xf16>, %x: memref<?x?xf16>) {
  frag.matmul %a, %b into %c with %bias, %scale, %x
      : memref<?x?xf16>, memref<?x?xf16> into memref<?x?xf16>
        with memref<?xf16>, memref<?x1xf16>, memref<?x?xf16> epilogue {
  ^bb0(%sum: f32, %old: f16, %u: f16, %v: f16, %w: f16):
    frag.yield %u : f16
  }
  func.return
}
"""
LINALG = """
#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
#column = affine_map<(i, j) -> (j)>
#narrow = affine_map<(i, j) -> (i, 0)>
func.func @f(%a: memref<?x?xf16> A, %b: memref<?x?xf16>, %d: memref<?x?xf16> C,
             %bias: memref<?xf16>, %r: memref<?xf16>, %q: memref<?x1xf16>, %e: memref<?x?xf16>) {
  %zero = arith.constant 0.0 : f16
  %i0 = arith.constant 0 : index
  %i1 = arith.constant 1 : index
  %m = memref.dim %a, %i0 : memref<?x?xf16>
  %n = memref.dim %b, %i1 : memref<?x?xf16>
  %c = memref.alloc(%m, %n) : memref<?x?xf16>
  linalg.fill ins(%zero : f16) outs(%c : memref<?x?xf16>)
  linalg.matmul ins(%a, %b : memref<?x?xf16>, memref<?x?xf16>) outs(%c : memref<?x?xf16>)
  %t = memref.alloc(%m, %n) : memref<?x?xf16>
  linalg.generic {indexing_maps = [#column, #row, #narrow, #id, #id],
                  iterator_types = ["parallel", "parallel"]}
      ins(%bias, %r, %q, %c : memref<?xf16>, memref<?xf16>, memref<?x1xf16>, memref<?x?xf16>)
      outs(%t : memref<?x?xf16>) {
  ^bb0(%1: f16, %2: f16, %3: f16, %4: f16, %5: f16):
    %s1 = arith.addf %1, %2 : f16
    %s2 = arith.addf %3, %4 : f16
    %s = arith.addf %s1, %s2 : f16
    linalg.yield %s : f16
  }
  linalg.add ins(%t, %e : memref<?x?xf16>, memref<?x?xf16>) outs(%t : memref<?x?xf16>)
  "memref.copy"(%t, %d) : (memref<?x?xf16>, memref<?x?xf16>) -> ()
  func.return
}
"""


def names(text: str, a: str = "", c: str = "") -> list[tuple[str | None, ...]]:
    module = compiler.parse(text.replace("xf16> A", f"xf16> {a}").replace("xf16> C", f"xf16> {c}"))
    return dimension_names(next(op for op in module.ops if isinstance(op, func.FuncOp)))[0]


def test_operands_of_an_epilogue() -> None:
    expected = [("m", "k"), ("k", "n"), ("m", "n"), ("n",), ("m", None), ("m", "n")]
    assert names(MATMUL) == expected


def test_operands_of_elementwise_operations() -> None:
    expected = [("m", "k"), ("k", "n"), ("m", "n"), ("n",), ("m",), ("m", None), ("m", "n")]
    assert names(LINALG) == expected


@pytest.mark.parametrize("text", [MATMUL, LINALG])
def test_given_names_reach_the_others(text: str) -> None:
    a, c = '{frag.sizes = ["rows", "k"]}', '{frag.sizes = ["rows", "columns"]}'
    found = names(text, a, c)
    assert found[:4] == [("rows", "k"), ("k", "columns"), ("rows", "columns"), ("columns",)]
    assert found[-1] == ("rows", "columns")
    assert found[-2] == ("rows", None)


TILES = """
func.func @f(%a: memref<?x16xf16> A, %b: memref<16x8xf16>, %c: memref<16x8xf32>)
    attributes {frag.warps = array<i64: 1, 1>} {
  %x = frag.load %a[0, 0] masked : memref<?x16xf16> -> !frag.tile<16x16xf16>
  %y = frag.load %b[0, 0] : memref<16x8xf16> -> !frag.tile<16x8xf16>
  %zero = arith.constant 0.0 : f32
  %z = frag.fill %zero : !frag.tile<16x8xf32>
  %d = frag.mma %x, %y, %z
      : !frag.tile<16x16xf16>, !frag.tile<16x8xf16>, !frag.tile<16x8xf32> -> !frag.tile<16x8xf32>
  frag.store %d, %c[0, 0] : !frag.tile<16x8xf32>, memref<16x8xf32>
  func.return
}
"""


@pytest.mark.parametrize(("given", "rows"), [("", "m"), ('{frag.sizes = ["rows", "k"]}', "rows")])
def test_a_tile_says_nothing_of_known_sizes(given: str, rows: str) -> None:
    """The tile of 16 rows may be all of C, and more than A has."""
    assert names(TILES, given) == [(rows, "k"), ("k", "n"), (None, "n")]


@pytest.mark.parametrize(("sizes", "rows"), [({}, 16), ({"m": 11}, 11)])
def test_a_known_size_is_likely_where_nothing_else_says(sizes: dict[str, int], rows: int) -> None:
    function = next(
        op for op in compiler.parse(TILES.replace(" A", "")).ops if isinstance(op, func.FuncOp)
    )
    assert resolve(slots(function), sizes, {})["m"] == rows


def test_all_of_an_array_says_what_its_sizes_are() -> None:
    """K of A and B is one size, which A's type tells."""
    text = """
    func.func @f(%a: memref<32x64xf16>, %b: memref<?x?xf16>, %c: memref<?x?xf16>) {
      linalg.matmul ins(%a, %b : memref<32x64xf16>, memref<?x?xf16>) outs(%c : memref<?x?xf16>)
      func.return
    }
    """
    assert names(text) == [("m", "k"), ("k", "n"), ("m", "n")]


@pytest.mark.parametrize("text", [MATMUL, LINALG])
def test_the_kernel_agrees(text: str) -> None:
    """Sizes by these names are those that its grid needs."""
    for a, c in (("", ""), ('{frag.sizes = ["rows", "k"]}', '{frag.sizes = ["rows", "columns"]}')):
        full = text.replace("xf16> A", f"xf16> {a}").replace("xf16> C", f"xf16> {c}")
        kernel = compiler.compile(full)
        for ours, argument in zip(names(text, a, c), kernel.signature, strict=True):
            pairs = list(zip(ours, argument.dims, strict=True))
            assert all(name == dim for name, dim in pairs if isinstance(dim, str)), argument


def test_stacked_tiles_have_their_product_last() -> None:
    text = Path(__file__, "../../../examples/mma_m8n8k4_f16.mlir").resolve().read_text()
    a, b, _, d = names(text)
    assert (a, b, d) == (("m", "k", "p"), ("k", "n", "p"), ("m", "n", "p"))
