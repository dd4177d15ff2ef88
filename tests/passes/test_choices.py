"""Small choices of the passes: how fragments are loaded, what is deferred, which warps."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Block
from xdsl.utils.exceptions import PassFailedException

import fragir
from fragir.dialects import frag
from fragir.errors import FragirError
from fragir.passes.frag_place import FragPlacePass
from fragir.passes.lowering.arithmetic import Arithmetic
from fragir.passes.lowering.lane_builder import defers
from fragir.passes.tiling.schedule import schedule_for

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
    assert defers(load, {}) == later


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


@pytest.mark.parametrize(
    ("tile", "sum_bits", "warps"),
    [
        ((32, 32, 16), 32, [2, 2]),
        ((16, 32, 16), 32, [1, 2]),
        ((32, 16, 16), 32, [2, 1]),
        ((128, 128, 16), 32, [2, 2]),  # 128 registers of sums a lane
        ((192, 176, 16), 32, [4, 2]),  # 264 with 2 by 2
    ],
)
def test_warps_of_a_block(tile: tuple[int, int, int], sum_bits: int, warps: list[int]) -> None:
    """Two by two where both sides have 32, and more where sums take over 128 registers."""
    kind = f"f{sum_bits}"
    sizes = dict(zip("mnk", tile, strict=True))
    text = """func.func @gemm(%a: memref<{m}x{k}xf16>, %b: memref<{k}x{n}xf16>,
                               %c: memref<{m}x{n}x{kind}>) {{
      frag.matmul %a, %b into %c {{tile = array<i64: {m}, {n}, {k}>}}
        : memref<{m}x{k}xf16>, memref<{k}x{n}xf16> into memref<{m}x{n}x{kind}>
      func.return
    }}""".format(**sizes, kind=kind)
    product = next(op for op in fragir.parse(text).walk() if isinstance(op, frag.MatmulOp))
    assert list(schedule_for(product, "sm_80").warps) == warps


@pytest.mark.parametrize(
    ("source", "target", "instruction"),
    [("f32", "tf32", "cvt.rna.tf32.f32"), ("tf32", "f32", None), ("f32", "f32", None)],
)
def test_tf32_is_rounded_to_and_read_as_f32(
    source: str, target: str, instruction: str | None
) -> None:
    text = f"""func.func @k(%p: !ptx.ptr<global>) attributes {{ptx.ntid = 32 : i64}} {{
      %x = ptx.load %p[0] : !ptx.ptr<global> -> {source}
      %y = ptx.cvt %x : {source} -> {target}
      ptx.store %y, %p[0] : {target}, !ptx.ptr<global>
      func.return
    }}"""
    ptx = fragir.compile(text, target="sm_80").ptx
    assert ("cvt." in ptx) == (instruction is not None)
    assert instruction is None or instruction in ptx


def test_predicates_side_by_side_stay_predicates() -> None:
    text = """func.func @k(%p: !ptx.ptr<global>) attributes {ptx.ntid = 32 : i64} {
      %x = ptx.load %p[0] : !ptx.ptr<global> -> i32
      %zero = arith.constant 0 : i32
      %less = arith.cmpi slt, %x, %zero : i32
      %is = arith.cmpi eq, %x, %zero : i32
      %both = ptx.pack %less, %is : i1, i1 -> vector<2xi1>
      func.return
    }"""
    ptx = fragir.compile(text, target="sm_80").ptx
    assert "mov.b32 {" not in ptx
    assert "prmt" not in ptx


def test_an_unknown_machine_is_no_target_of_a_pass() -> None:
    module = fragir.parse(CHAIN.format(STORE.format("u")))
    with pytest.raises(PassFailedException, match="sm_81"):
        FragPlacePass("sm_81").apply(Context(), module)


@pytest.mark.parametrize(("by", "name"), [(1, None), (2, "arith.shrsi"), (8, "arith.shrsi")])
def test_quotients_of_what_may_be_negative(by: int, name: str | None) -> None:
    """x / 2 of -2 is -1: the sign is shifted in, as an unsigned shift or division would not."""
    block = Block(arg_types=[IndexType()])
    ar = Arithmetic(block)
    x = block.args[0]
    result = ar.quotient(x, by)
    if name is None:
        assert result is x
    else:
        assert [op.name for op in block.ops if op.name != "arith.constant"] == [name]
    assert ar.quotient(-6, 2) == -3


def test_an_if_gives_what_its_branch_yields() -> None:
    text = """func.func @f(%a: memref<16x16xf32>, %c: memref<16x16xf32>, %n: index) {
      %zero = arith.constant 0 : index
      %some = arith.cmpi sgt, %n, %zero : index
      %t = frag.load %a[0, 0] : memref<16x16xf32> -> !frag.tile<16x16xf32>
      %u = scf.if %some -> (!frag.tile<16x16xf32>) {
        %v = frag.map %t : !frag.tile<16x16xf32> -> !frag.tile<16x16xf32> {
        ^bb0(%x: f32):
          %y = arith.negf %x : f32
          frag.yield %y : f32
        }
        scf.yield %v : !frag.tile<16x16xf32>
      } else {
        scf.yield %t : !frag.tile<16x16xf32>
      }
      frag.store %u, %c[0, 0] : !frag.tile<16x16xf32>, memref<16x16xf32>
      func.return
    }"""
    kernel = fragir.compile(text, target="sm_80")
    a = np.arange(256, dtype=np.float32).reshape(16, 16)
    for n, wanted in ((1, -a), (0, a)):
        c = np.zeros_like(a)
        kernel(a, c, n, on="emulator")
        assert (c == wanted).all()


def test_one_matrix_for_a_whole_batch() -> None:
    """A (d0, d1, d3) by B (d3, d2): each matrix of A times the same B."""
    text = """func.func @f(%a: memref<4x8x16xf16>, %b: memref<16x8xf16>, %c: memref<4x8x8xf32>) {
      linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d3)>,
                                       affine_map<(d0, d1, d2, d3) -> (d3, d2)>,
                                       affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>],
                      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
          ins(%a, %b : memref<4x8x16xf16>, memref<16x8xf16>) outs(%c : memref<4x8x8xf32>) {
      ^bb0(%x: f16, %y: f16, %s: f32):
        %xf = arith.extf %x : f16 to f32
        %yf = arith.extf %y : f16 to f32
        %p = arith.mulf %xf, %yf : f32
        %t = arith.addf %s, %p : f32
        linalg.yield %t : f32
      }
      func.return
    }"""
    rng = np.random.default_rng(0)
    shapes = (4, 8, 16), (16, 8)
    a, b = (rng.integers(-4, 5, shape).astype(np.float16) for shape in shapes)
    c = np.ones((4, 8, 8), np.float32)
    fragir.compile(text, target="sm_80")(a, b, c, on="emulator")
    assert np.array_equal(c, a.astype(np.float32) @ b.astype(np.float32) + 1)


def test_a_transposed_tile_is_stored_in_whole_rows() -> None:
    """Both ways a warp's access lies in one row of memory; in between warps exchange."""
    text = (Path(__file__).parents[2] / "examples/data/transpose.mlir").read_text()
    explained = fragir.explain_layouts(text)
    (conversion,) = explained.conversions
    assert "bar.sync" in str(explained)
    assert "lane [32:(0,1)]" in str(conversion)
