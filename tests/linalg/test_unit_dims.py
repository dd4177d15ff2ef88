"""Memory whose rows' numbers have a dimension of one element, as those write it who broadcast it
later: one kernel, as without."""

from __future__ import annotations

import numpy as np
import pytest

import fragir
from fragir.errors import FragirError
from fragir.host import Program
from tests.linalg.judging import judged

ROWS = """func.func @f(%x: {0}<6x20xf32>, %s: {0}<6x1xf32>, %y: {0}<6x20xf32>){1} {{
  %zero = arith.constant 0.0 : f32
  {2}linalg.fill ins(%zero : f32) outs(%s : {0}<6x1xf32>){3}
  {4}linalg.generic {{
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, 0)>],
      iterator_types = ["parallel", "reduction"]
    }} ins(%x : {0}<6x20xf32>) outs(%{5} : {0}<6x1xf32>) {{
    ^bb0(%a: f32, %o: f32):
      %t = arith.addf %a, %o : f32
      linalg.yield %t : f32
  }}{3}
  {6}linalg.generic {{
      indexing_maps = [affine_map<(i, j, u) -> (i, u)>, affine_map<(i, j, u) -> (i, j)>,
                       affine_map<(i, j, u) -> (i, j)>],
      iterator_types = ["parallel", "parallel", "parallel"]
    }} ins(%{7}, %x : {0}<6x1xf32>, {0}<6x20xf32>) outs(%y : {0}<6x20xf32>) {{
    ^bb0(%a: f32, %b: f32, %o: f32):
      %t = arith.divf %b, %a : f32
      linalg.yield %t : f32
  }}{8}
  return{9}
}}
"""
TENSORS = ROWS.format(
    "tensor", " -> tensor<6x20xf32>", "%f = ", " -> tensor<6x1xf32>", "%g = ", "f", "%h = ", "g",
    " -> tensor<6x20xf32>", " %h : tensor<6x20xf32>",
)  # fmt: skip
MEMORY = ROWS.format("memref", "", "", "", "", "s", "", "s", "", "")


@pytest.mark.parametrize("text", [TENSORS, MEMORY], ids=["tensors", "memory"])
def test_rows_divided_by_their_sums(text: str) -> None:
    x = np.random.default_rng(0).uniform(1, 2, (6, 20)).astype(np.float32)
    found = judged(text, ["x"], [x], "sm_80")[-1]
    np.testing.assert_allclose(found, x / x.sum(1, keepdims=True), rtol=1e-5)
    assert not isinstance(fragir.compile(TENSORS, target="sm_80"), Program)


def test_one_number_of_all() -> None:
    """No dimension is left; operations of no loop come behind."""
    text = """func.func @f(%x: tensor<5x7xf32>) -> tensor<1x1xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x1xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x1xf32>) -> tensor<1x1xf32>
  %g = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (0, 0)>],
      iterator_types = ["reduction", "reduction"]} ins(%x : tensor<5x7xf32>)
      outs(%f : tensor<1x1xf32>) {
    ^bb0(%a: f32, %o: f32):
      %t = arith.addf %a, %o : f32
      linalg.yield %t : f32
  } -> tensor<1x1xf32>
  %h = linalg.exp ins(%g : tensor<1x1xf32>) outs(%e : tensor<1x1xf32>) -> tensor<1x1xf32>
  return %h : tensor<1x1xf32>
}
"""
    x = np.random.default_rng(0).uniform(-0.1, 0.1, (5, 7)).astype(np.float32)
    (found,) = judged(text, ["x"], [x], "sm_80")
    np.testing.assert_allclose(found, np.exp(x.sum()).reshape(1, 1), rtol=1e-5)


def test_one_column_of_several_is_refused() -> None:
    text = TENSORS.replace("6x1xf32", "6x4xf32")
    with pytest.raises(FragirError, match=r"writes at \(d0, 0\)") as caught:
        fragir.compile(text, target="sm_80")
    assert caught.value.line == 4


def test_what_a_sum_reads_is_stored_at_its_places() -> None:
    """A number for each turn of the loop, and one of all: each in its place."""
    text = """func.func @f(%x: memref<8xf32>, %y: memref<8x1xf32>, %s: memref<f32>) {
  %zero = arith.constant 0.0 : f32
  linalg.generic {indexing_maps = [affine_map<(i, u) -> (i)>, affine_map<(i, u) -> (i, u)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%x : memref<8xf32>) outs(%y : memref<8x1xf32>) {
    ^bb0(%a: f32, %o: f32):
      %r = arith.maximumf %a, %zero : f32
      linalg.yield %r : f32
  }
  linalg.fill ins(%zero : f32) outs(%s : memref<f32>)
  linalg.generic {indexing_maps = [affine_map<(i) -> (i, 0)>, affine_map<(i) -> ()>],
      iterator_types = ["reduction"]} ins(%y : memref<8x1xf32>) outs(%s : memref<f32>) {
    ^bb0(%a: f32, %o: f32):
      %r = arith.addf %o, %a : f32
      linalg.yield %r : f32
  }
  return
}
"""
    x = np.arange(-3, 5, dtype=np.float32)
    found = judged(text, ["x"], [x], "sm_80")
    np.testing.assert_array_equal(found[0][:, 0], np.maximum(x, 0))
    np.testing.assert_array_equal(found[1], 10)
