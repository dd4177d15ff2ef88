"""Tensors and memory of index: arrays of i32, with which bodies compute as with places."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.linalg.judging import judged

Array = npt.NDArray[Any]


def numbers(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("size", ["?", "33"])
def test_rows_are_taken_from_a_table(size: str) -> None:
    table = numbers(50, 24)
    places = np.random.default_rng(1).integers(0, 50, 33).astype(np.int32)
    text = f"""#rows = affine_map<(i, j) -> (i)>
#every = affine_map<(i, j) -> (i, j)>
func.func @f(%t: tensor<50x24xf32>, %p: tensor<{size}xindex>, %o: tensor<{size}x24xf32>)
    -> tensor<{size}x24xf32> {{
  %r = linalg.generic {{indexing_maps = [#rows, #every], iterator_types = ["parallel", "parallel"]}}
      ins(%p : tensor<{size}xindex>) outs(%o : tensor<{size}x24xf32>) {{
  ^bb0(%at: index, %old: f32):
    %j = linalg.index 1 : index
    %x = tensor.extract %t[%at, %j] : tensor<50x24xf32>
    linalg.yield %x : f32
  }} -> tensor<{size}x24xf32>
  return %r : tensor<{size}x24xf32>
}}"""
    out = np.zeros((33, 24), np.float32)
    (found,) = judged(text, "tpo", [table, places, out], "sm_80")
    assert np.array_equal(found, table[places])


@pytest.mark.parametrize("shaped", ["tensor", "memref"])
def test_places_are_computed(shaped: str) -> None:
    """Written, read again by another operation, and kept where they do not go up."""
    a = np.random.default_rng(2).integers(-5, 40, (7, 9)).astype(np.int32)
    type_ = f"{shaped}<7x9xindex>"
    gives, text = ("", "") if shaped == "memref" else (f" -> {type_}", "%r = ")
    result = f" -> {type_}" if shaped == "tensor" else ""
    text = f"""#every = affine_map<(i, j) -> (i, j)>
func.func @f(%a: {type_}, %o: {type_}){gives} {{
  {text}linalg.generic {{indexing_maps = [#every, #every],
      iterator_types = ["parallel", "parallel"]}}
      ins(%a : {type_}) outs(%o : {type_}) {{
  ^bb0(%x: index, %old: index):
    %i = linalg.index 0 : index
    %c = arith.constant 3 : index
    %y = arith.muli %i, %c : index
    %z = arith.maxsi %x, %y : index
    linalg.yield %z : index
  }}{result}
  return{" %r : " + type_ if shaped == "tensor" else ""}
}}"""
    (found,) = judged(text, "ao", [a, np.zeros_like(a)], "sm_80")
    assert found.dtype == np.int32
    assert np.array_equal(found, np.maximum(a, 3 * np.arange(7)[:, None]))


def test_the_place_of_the_largest() -> None:
    """As torch-mlir prints it with index in place of i64."""
    a = numbers(12, 40)
    text = """#every = affine_map<(i, j) -> (i, j)>
#rows = affine_map<(i, j) -> (i)>
func.func @f(%a: tensor<12x40xf32>) -> tensor<12xindex> {
  %least = arith.constant 0xFF800000 : f32
  %c0 = arith.constant 0 : index
  %e = tensor.empty() : tensor<12xf32>
  %m = linalg.fill ins(%least : f32) outs(%e : tensor<12xf32>) -> tensor<12xf32>
  %q = tensor.splat %c0 : tensor<12xindex>
  %r:2 = linalg.generic {indexing_maps = [#every, #rows, #rows],
      iterator_types = ["parallel", "reduction"]}
      ins(%a : tensor<12x40xf32>) outs(%m, %q : tensor<12xf32>, tensor<12xindex>) {
  ^bb0(%x: f32, %y: f32, %at: index):
    %j = linalg.index 1 : index
    %more = arith.cmpf ogt, %x, %y : f32
    %z = arith.select %more, %x, %y : f32
    %to = arith.select %more, %j, %at : index
    linalg.yield %z, %to : f32, index
  } -> (tensor<12xf32>, tensor<12xindex>)
  return %r#1 : tensor<12xindex>
}"""
    (found,) = judged(text, "a", [a], "sm_90a")
    assert np.array_equal(found, a.argmax(1))


def test_a_table_of_places() -> None:
    a = numbers(5)
    text = """#map = affine_map<(i) -> (i)>
func.func @f(%a: tensor<5xf32>) -> (tensor<5xf32>, tensor<5xindex>) {
  %p = arith.constant dense<[4, 0, 2, 2, 1]> : tensor<5xindex>
  %c = arith.constant 3 : index
  %q = tensor.insert %c into %p[%c] : tensor<5xindex>
  %e = tensor.empty() : tensor<5xf32>
  %r = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]}
      ins(%q : tensor<5xindex>) outs(%e : tensor<5xf32>) {
  ^bb0(%at: index, %old: f32):
    %x = tensor.extract %a[%at] : tensor<5xf32>
    linalg.yield %x : f32
  } -> tensor<5xf32>
  return %r, %q : tensor<5xf32>, tensor<5xindex>
}"""
    found, places = judged(text, "a", [a], "sm_80")
    assert places.tolist() == [4, 0, 2, 3, 1]
    assert np.array_equal(found, a[[4, 0, 2, 3, 1]])
