"""Programs at matrix and tile level against plain numpy."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects import func

from fragir import compiler
from fragir.errors import FragirError
from fragir.reference import Bounded, compare, evaluate, outputs
from fragir.reference.formats import decode, encode, storage


def function(text: str) -> func.FuncOp:
    return next(op for op in compiler.parse(text, "p.mlir").ops if isinstance(op, func.FuncOp))


def value(result: Bounded | None) -> Any:
    assert result is not None
    return result.value


def random_array(shape: tuple[int, ...], element: str, seed: int) -> Any:
    generator = np.random.default_rng(seed)
    if element in ("s8", "u8", "s32"):
        return encode(generator.integers(0, 100, shape), element)
    return encode(generator.standard_normal(shape), element)


TYPES = {"f16": "f16", "bf16": "bf16", "tf32": "tf32", "f64": "f64", "e4m3": "f8E4M3FN", "s8": "i8"}


@settings(max_examples=60, deadline=None)
@given(
    sizes=st.tuples(*[st.integers(1, 40)] * 3),
    element=st.sampled_from(sorted(TYPES)),
    turned=st.tuples(st.booleans(), st.booleans()),
    seed=st.integers(0, 1000),
)
def test_matmul(
    sizes: tuple[int, int, int], element: str, turned: tuple[bool, bool], seed: int
) -> None:
    m, n, k = sizes
    in_type = TYPES[element]
    out = {"s8": "i32", "f64": "f64"}.get(element, "f32")
    words = ["transposed" if t else "" for t in turned]
    f = function(f"""
        func.func @f(%a: memref<?x?x{in_type}>, %b: memref<?x?x{in_type}>, %c: memref<?x?x{out}>) {{
          frag.matmul %a {words[0]}, %b {words[1]} into %c
            : memref<?x?x{in_type}>, memref<?x?x{in_type}> into memref<?x?x{out}>
          func.return
        }}""")
    a = random_array((k, m) if turned[0] else (m, k), element, seed)
    b = random_array((n, k) if turned[1] else (k, n), element, seed + 1)
    c = np.zeros((m, n), storage({"i32": "s32"}.get(out, out)))
    left, right = decode(a, element), decode(b, element)
    expected = (left.T if turned[0] else left) @ (right.T if turned[1] else right)
    _, _, result = evaluate(f, [a, b, c])
    assert result is not None
    assert np.allclose(result.value, expected, rtol=1e-13, atol=1e-13)
    assert outputs(f) == [2]
    assert not c.any()
    if element == "s8":
        assert result.exact
    elif element != "f64":
        assert (result.bound <= 1e-2 * (1 + np.abs(left).sum() * np.abs(right).max())).all()


def test_epilogue_and_broadcast() -> None:
    f = function("""
        func.func @f(%a: memref<8x16xf16>, %b: memref<16x6xf16>, %c: memref<8x6xf32>,
                     %bias: memref<6xf32>, %scale: memref<8x1xf16>, %alpha: f32) {
          frag.matmul %a, %b into %c with %bias, %scale
            : memref<8x16xf16>, memref<16x6xf16> into memref<8x6xf32>
              with memref<6xf32>, memref<8x1xf16> epilogue {
          ^bb0(%sum: f32, %old: f32, %x: f32, %y: f16):
            %zero = arith.constant 0.0 : f32
            %wide = arith.extf %y : f16 to f32
            %s = arith.mulf %alpha, %sum : f32
            %t = arith.addf %s, %x : f32
            %u = math.fma %old, %wide, %t : f32
            %v = arith.maximumf %u, %zero : f32
            frag.yield %v : f32
          }
          func.return
        }""")
    a, b = random_array((8, 16), "f16", 0), random_array((16, 6), "f16", 1)
    c, bias = random_array((8, 6), "f32", 2), random_array((6,), "f32", 3)
    scale = random_array((8, 1), "f16", 4)
    result = evaluate(f, [a, b, c, bias, scale, 0.25])
    plain = 0.25 * (a.astype(float) @ b.astype(float)) + bias + c * scale.astype(float)
    found = result[2]
    assert found is not None
    assert np.allclose(found.value, np.maximum(plain, 0), atol=1e-12)
    assert (found.bound < 1e-4).all()
    assert result[5] is None


TILED = """
func.func @f(%a: memref<?x?xf16>, %b: memref<?x?xf16>, %c: memref<?x?xf32>)
    attributes {frag.grid = #frag.grid<n by 16, m by 32>, frag.warps = array<i64: 2, 1>} {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %step = arith.constant 16 : index
  %rows = arith.constant 32 : index
  %k = memref.dim %a, %one : memref<?x?xf16>
  %x = frag.block_id x
  %y = frag.block_id y
  %i = arith.muli %y, %rows : index
  %j = arith.muli %x, %step : index
  %f0 = arith.constant 0.0 : f32
  %start = frag.fill %f0 : !frag.tile<32x16xf32>
  %shared = memref.alloc() : memref<2x16x16xf16, #frag.shared>
  %sum = scf.for %at = %zero to %k step %step iter_args(%acc = %start) -> (!frag.tile<32x16xf32>) {
    %ta = frag.load %a[%i, %at] masked : memref<?x?xf16> -> !frag.tile<32x16xf16>
    frag.copy async %b[%at, %j] to %shared[1] masked
      : memref<?x?xf16> to memref<2x16x16xf16, #frag.shared>
    frag.commit
    frag.wait 0
    frag.barrier
    %view = frag.view %shared[1]
      : memref<2x16x16xf16, #frag.shared> -> memref<16x16xf16, #frag.shared>
    %tb = frag.load %view[0, 0] : memref<16x16xf16, #frag.shared> -> !frag.tile<16x16xf16>
    %next = frag.mma %ta, %tb, %acc : !frag.tile<32x16xf16>, !frag.tile<16x16xf16>,
      !frag.tile<32x16xf32> -> !frag.tile<32x16xf32>
    frag.barrier
    scf.yield %next : !frag.tile<32x16xf32>
  }
  frag.store %sum, %c[%i, %j] masked : !frag.tile<32x16xf32>, memref<?x?xf32>
  func.return
}
"""


@pytest.mark.parametrize(("m", "n", "k"), [(32, 16, 16), (50, 33, 40), (1, 1, 1)])
def test_tiles_over_a_grid(m: int, n: int, k: int) -> None:
    a, b = random_array((m, k), "f16", 0), random_array((k, n), "f16", 1)
    c = np.full((m, n), 7, np.float32)
    grid = (-(-n // 16), -(-m // 32), 1)
    _, _, tiled = evaluate(function(TILED), [a, b, c], grid=grid)
    whole = function("""
        func.func @f(%a: memref<?x?xf16>, %b: memref<?x?xf16>, %c: memref<?x?xf32>) {
          frag.matmul %a, %b into %c : memref<?x?xf16>, memref<?x?xf16> into memref<?x?xf32>
          func.return
        }""")
    _, _, expected = evaluate(whole, [a, b, c])
    assert tiled is not None
    assert expected is not None
    assert np.allclose(tiled.value, expected.value, atol=1e-12)
    # the order is known here, so the bound is the sharper one
    assert (tiled.bound <= expected.bound * 1.0001 + 1e-12).all()


def test_four_products() -> None:
    f = function("""
        func.func @f(%a: memref<8x4x4xf16>, %b: memref<4x8x4xf16>, %c: memref<8x8x4xf32>) {
          %f0 = arith.constant 0.0 : f32
          %ta = frag.load %a[0, 0, 0] : memref<8x4x4xf16> -> !frag.tile<8x4x4xf16>
          %tb = frag.load %b[0, 0, 0] : memref<4x8x4xf16> -> !frag.tile<4x8x4xf16>
          %tc = frag.fill %f0 : !frag.tile<8x8x4xf32>
          %td = frag.mma %ta, %tb, %tc : !frag.tile<8x4x4xf16>, !frag.tile<4x8x4xf16>,
            !frag.tile<8x8x4xf32> -> !frag.tile<8x8x4xf32>
          frag.store %td, %c[0, 0, 0] : !frag.tile<8x8x4xf32>, memref<8x8x4xf32>
          func.return
        }""")
    a, b = random_array((8, 4, 4), "f16", 0), random_array((4, 8, 4), "f16", 1)
    result = evaluate(f, [a, b, np.zeros((8, 8, 4), np.float32)], target="sm_70")
    expected = np.einsum("mkp,knp->mnp", a.astype(float), b.astype(float))
    assert np.allclose(value(result[2]), expected, atol=1e-13)


def test_maps_casts_and_transposes_are_exact() -> None:
    f = function("""
        func.func @f(%a: memref<16x8xf16>, %c: memref<8x16xbf16>) {
          %t = frag.load %a[0, 0] transposed : memref<16x8xf16> -> !frag.tile<8x16xf16>
          %w = frag.cast %t : !frag.tile<8x16xf16> -> !frag.tile<8x16xf32>
          %r = frag.map %w : !frag.tile<8x16xf32> -> !frag.tile<8x16xf32> {
          ^bb0(%x: f32):
            %half = arith.constant 5.000000e-01 : f32
            %small = arith.cmpf olt, %x, %half : f32
            %y = arith.mulf %x, %x : f32
            %z = arith.select %small, %y, %x : f32
            frag.yield %z : f32
          }
          %b = frag.cast %r : !frag.tile<8x16xf32> -> !frag.tile<8x16xbf16>
          frag.store %b, %c[0, 0] : !frag.tile<8x16xbf16>, memref<8x16xbf16>
          func.return
        }""")
    a = random_array((16, 8), "f16", 0)
    wide: npt.NDArray[np.float32] = a.T.astype(np.float32)
    picked = np.where(wide < 0.5, wide * wide, wide)
    result = evaluate(f, [a, np.zeros((8, 16), np.uint16)])[1]
    assert result is not None
    assert result.exact
    assert np.array_equal(encode(result.value, "bf16"), encode(picked.astype(float), "bf16"))


GENERIC = """
#a = affine_map<(i, j, k) -> (k, i)>
#b = affine_map<(i, j, k) -> (j, k)>
#c = affine_map<(i, j, k) -> (i, j)>
#id = affine_map<(i, j) -> (i, j)>
#column = affine_map<(i, j) -> (j)>
func.func @f(%a: memref<?x?xf16>, %b: memref<?x?xf16>, %c: memref<?x?xf32>, %v: memref<?xf32>) {
  linalg.generic {indexing_maps = [#a, #b, #c],
                  iterator_types = ["parallel", "parallel", "reduction"]}
    ins(%a, %b : memref<?x?xf16>, memref<?x?xf16>) outs(%c : memref<?x?xf32>) {
  ^bb0(%x: f16, %y: f16, %z: f32):
    %xx = arith.extf %x : f16 to f32
    %yy = arith.extf %y : f16 to f32
    %p = arith.mulf %xx, %yy : f32
    %s = arith.addf %z, %p : f32
    linalg.yield %s : f32
  }
  linalg.generic {indexing_maps = [#id, #column, #id], iterator_types = ["parallel", "parallel"]}
    ins(%c, %v : memref<?x?xf32>, memref<?xf32>) outs(%c : memref<?x?xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %s = arith.addf %x, %y : f32
    linalg.yield %s : f32
  }
  func.return
}
"""


def test_linalg_generic() -> None:
    a, b = random_array((20, 9), "f16", 0), random_array((5, 20), "f16", 1)
    c, v = random_array((9, 5), "f32", 2), random_array((5,), "f32", 3)
    f = function(GENERIC)
    result = evaluate(f, [a, b, c, v])
    expected = a.T.astype(float) @ b.T.astype(float) + c + v
    assert np.allclose(value(result[2]), expected, atol=1e-12)
    assert outputs(f) == [2]


def test_tensors_are_written_to_their_destination() -> None:
    f = function("""
        func.func @f(%a: tensor<4x8xbf16>, %b: tensor<8x6xbf16>, %c: tensor<4x6xbf16>)
            -> tensor<4x6xbf16> {
          %z = arith.constant 0.0 : bf16
          %e = linalg.fill ins(%z : bf16) outs(%c : tensor<4x6xbf16>) -> tensor<4x6xbf16>
          %r = linalg.matmul ins(%a, %b : tensor<4x8xbf16>, tensor<8x6xbf16>)
            outs(%e : tensor<4x6xbf16>) -> tensor<4x6xbf16>
          func.return %r : tensor<4x6xbf16>
        }""")
    a, b = random_array((4, 8), "bf16", 0), random_array((8, 6), "bf16", 1)
    result = evaluate(f, [a, b, random_array((4, 6), "bf16", 2)])
    expected = decode(a, "bf16") @ decode(b, "bf16")
    assert np.allclose(value(result[2]), expected, atol=1e-12)
    assert outputs(f) == [2]


def body(text: str, arguments: str = "%a: memref<16x16xf16>") -> func.FuncOp:
    return function(f"func.func @f({arguments}) {{\n{text}\nfunc.return\n}}")


FROM_EMPTY = """
#id = affine_map<(m, n) -> (m, n)>
func.func @f(%a: tensor<?x?xf16>, %b: tensor<?x?xf16>) -> tensor<?x?xf16> {
  %z = arith.constant 0.0 : f16
  %i0 = arith.constant 0 : index
  %i1 = arith.constant 1 : index
  %m = tensor.dim %a, %i0 : tensor<?x?xf16>
  %n = tensor.dim %b, %i1 : tensor<?x?xf16>
  %empty = tensor.empty(%m, %n) : tensor<?x?xf16>
  %start = linalg.fill ins(%z : f16) outs(%empty : tensor<?x?xf16>) -> tensor<?x?xf16>
  %r = linalg.matmul ins(%a, %b : tensor<?x?xf16>, tensor<?x?xf16>)
    outs(%start : tensor<?x?xf16>) -> tensor<?x?xf16>
  func.return %r : tensor<?x?xf16>
}
"""


def test_a_tensor_from_nowhere_takes_one_more_argument() -> None:
    f = function(FROM_EMPTY)
    a, b = random_array((5, 7), "f16", 0), random_array((7, 3), "f16", 1)
    result = evaluate(f, [a, b, np.zeros((5, 3), np.float16)])
    assert np.allclose(value(result[2]), a.astype(float) @ b.astype(float), atol=1e-12)
    with pytest.raises(FragirError, match="takes 3 arguments, not 2"):
        evaluate(f, [a, b])
    with pytest.raises(FragirError, match="the result is 5x3, its memory 3x5"):
        evaluate(f, [a, b, np.zeros((3, 5), np.float16)])


RESHAPED = """
#id = affine_map<(m, n) -> (m, n)>
#rows = affine_map<(m, n) -> (m, 0)>
func.func @f(%v: memref<?xf32>, %x: memref<?x?xf32>, %y: memref<?xf32>) {
  %i0 = arith.constant 0 : index
  %i1 = arith.constant 1 : index
  %m = memref.dim %x, %i0 : memref<?x?xf32>
  %n = memref.dim %x, %i1 : memref<?x?xf32>
  %column = memref.expand_shape %v [[0, 1]] output_shape [%m, 1]
    : memref<?xf32> into memref<?x1xf32>
  %matrix = memref.expand_shape %y [[0, 1]] output_shape [%m, %n]
    : memref<?xf32> into memref<?x?xf32>
  %sum = memref.alloc(%m, %n) : memref<?x?xf32>
  linalg.generic {indexing_maps = [#rows, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%column, %x : memref<?x1xf32>, memref<?x?xf32>) outs(%sum : memref<?x?xf32>) {
  ^bb0(%p: f32, %q: f32, %old: f32):
    %s = arith.addf %p, %q : f32
    linalg.yield %s : f32
  }
  %flat = memref.collapse_shape %matrix [[0, 1]] : memref<?x?xf32> into memref<?xf32>
  %again = memref.expand_shape %flat [[0, 1]] output_shape [%m, %n]
    : memref<?xf32> into memref<?x?xf32>
  "memref.copy"(%sum, %again) : (memref<?x?xf32>, memref<?x?xf32>) -> ()
  func.return
}
"""


def test_dynamic_allocations_and_reshapes() -> None:
    f = function(RESHAPED)
    v, x = random_array((6,), "f32", 0), random_array((6, 4), "f32", 1)
    result = evaluate(f, [v, x, np.zeros(24, np.float32)])
    assert outputs(f) == [2]
    assert np.allclose(value(result[2]), (x + v[:, None]).ravel(), rtol=1e-6)
    # memory in another order is taken as the matrix that it is
    same = evaluate(f, [v, np.asfortranarray(x), np.zeros(24, np.float32)])
    assert np.array_equal(value(same[2]), value(result[2]))
    with pytest.raises(FragirError, match="memory of 23 cannot be seen as 6x4"):
        evaluate(f, [v, x, np.zeros(23, np.float32)])


def test_leaving_the_memory_is_an_error_with_its_place() -> None:
    load = "%t = frag.load %a[8, 0] : memref<?x16xf16> -> !frag.tile<16x16xf16>"
    f = body(load, "%a: memref<?x16xf16>")
    with pytest.raises(FragirError, match="leaves the memory of 16x16") as caught:
        evaluate(f, [np.zeros((16, 16), np.float16)])
    assert (caught.value.file, caught.value.line) == ("p.mlir", 2)


def test_an_unknown_operation_is_named() -> None:
    f = body("%x = arith.shli %s, %s : i1", "%s: i1")
    with pytest.raises(FragirError, match=r"does not know arith\.shli on i1"):
        evaluate(f, [1.0])


def test_arguments_are_counted() -> None:
    with pytest.raises(FragirError, match="takes 1 arguments, not 2"):
        evaluate(body(""), [np.zeros((16, 16), np.float16), 1.0])


def test_control_that_depends_on_rounding() -> None:
    f = body(
        """%e = math.exp %s : f32
        %one = arith.constant 1.000000e+00 : f32
        %d = arith.divf %e, %e : f32
        %more = arith.cmpf ogt, %d, %one : f32
        scf.if %more {
          scf.yield
        }""",
        "%s: f32",
    )
    with pytest.raises(FragirError, match="depends on rounding"):
        evaluate(f, [0.3])


def test_compare() -> None:
    reference = Bounded(np.array([1.0, 2.0, np.inf, np.nan, 5.0]), np.array([0.1, 0, 0, 0, np.inf]))
    good = np.array([1.05, 2.0, np.inf, np.nan, -1e30], np.float32)
    found = compare(reference, good, "f32", allow_unjudged=0.2)
    assert found.passed
    assert found.unbounded == 1
    assert found.max_error == pytest.approx(0.05, rel=1e-5)
    assert found.bound == 0.1
    for place, wrong in enumerate([1.2, np.nextafter(np.float32(2), np.float32(3)), 1e38, 0.0]):
        bad = good.copy()
        bad[place] = wrong
        worse = compare(reference, bad, "f32")
        assert (worse.mismatches, worse.worst) == (1, (place,))
        assert not worse.passed


def test_a_wrong_result_is_found() -> None:
    """One product too few in one element, beyond the bound of a long f16 sum."""
    a, b = random_array((8, 256), "f16", 0), random_array((256, 8), "f16", 1)
    f = function("""
        func.func @f(%a: memref<8x256xf16>, %b: memref<256x8xf16>, %c: memref<8x8xf32>) {
          frag.matmul %a, %b into %c : memref<8x256xf16>, memref<256x8xf16> into memref<8x8xf32>
          func.return
        }""")
    result = evaluate(f, [a, b, np.zeros((8, 8), np.float32)])[2]
    assert result is not None
    good = result.value.astype(np.float32)
    assert compare(result, good, "f32").passed
    bad = good.copy()
    bad[3, 4] -= np.float32(a[3, 100]) * np.float32(b[100, 4])
    assert compare(result, bad, "f32").worst == (3, 4)


def test_the_reference_and_the_emulator_are_strangers() -> None:
    text = (
        "import sys, fragir.reference.evaluation, fragir.reference.inputs;"
        "print([m for m in sys.modules if m.startswith('fragir.emulator')])"
    )
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
