"""cf.assert in bodies, as torch-mlir checks the places that it reads at."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.func import FuncOp

import fragir
from fragir.errors import FragirError
from fragir.reference import evaluate

TEXT = """func.func @rows(%t: tensor<50x16xf32>, %i: tensor<{0}xi64>) -> tensor<{0}x16xf32> {{
  %c50 = arith.constant 50 : i64
  %c0 = arith.constant 0 : i64
  %e = tensor.empty() : tensor<{0}x16xf32>
  %r = linalg.generic {{
      indexing_maps = [affine_map<(n, d) -> (n)>, affine_map<(n, d) -> (n, d)>],
      iterator_types = ["parallel", "parallel"]
    }} ins(%i : tensor<{0}xi64>) outs(%e : tensor<{0}x16xf32>) {{
    ^bb0(%at: i64, %o: f32):
      %below = arith.cmpi slt, %at, %c50 : i64
      cf.assert %below, "too large"
      %above = arith.cmpi {1}, %at, %c0 : i64
      cf.assert %above, "too small"
      %row = arith.index_cast %at : i64 to index
      %d = linalg.index 1 : index
      %x = tensor.extract %t[%row, %d] : tensor<50x16xf32>
      linalg.yield %x : f32
  }} -> tensor<{0}x16xf32>
  return %r : tensor<{0}x16xf32>
}}
"""


def run(count: int, places: np.ndarray, compare: str = "sge") -> np.ndarray:
    table = np.arange(800, dtype=np.float32).reshape(50, 16)
    found = np.zeros((count, 16), np.float32)
    kernel = fragir.compile(TEXT.format(count, compare), target="sm_80")
    report = kernel(table, places, found, on="emulator", check=True)
    assert report.findings == []
    assert np.array_equal(found, table[places])
    return found


@pytest.mark.parametrize("count", [1, 3, 16, 37])
@pytest.mark.parametrize("compare", ["sge", "sgt"])
def test_what_lies_beyond_the_end_is_not_asserted(count: int, compare: str) -> None:
    """Of elements beyond it zeros are read, which are not above 0."""
    run(count, np.arange(1, count + 1, dtype=np.int64), compare)


@pytest.mark.parametrize(("place", "message"), [(50, "too large"), (-1, "too small")])
def test_what_does_not_hold(place: int, message: str) -> None:
    places = np.arange(37, dtype=np.int64)
    places[21] = place
    with pytest.raises(FragirError, match=message):
        run(37, places)
    (function,) = fragir.parse(TEXT.format(37, "sge")).ops
    assert isinstance(function, FuncOp)
    table = np.zeros((50, 16), np.float32)
    with pytest.raises(FragirError, match=rf"{message}: this does not hold at \[21, 0\]"):
        evaluate(function, [table, places, np.zeros((37, 16), np.float32)])
