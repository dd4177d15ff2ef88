"""Numbers that a kernel loads to steer itself: offsets of ragged rows, tables of pages, biases."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from xdsl.dialects import func

import fragir
from fragir.compiler import parse
from fragir.errors import FragirError
from fragir.reference import evaluate

Array = npt.NDArray[Any]

RAGGED = """
// Rows offsets[g] to offsets[g + 1] of x belong to group g, which adds its own bias.
func.func @ragged(%x: memref<?x32xf32>, %offsets: memref<?x{type}>, %bias: memref<?xf32>,
                  %y: memref<?x32xf32>) attributes {{frag.grid = #frag.grid<5>}} {{
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %g = frag.block_id x
  %next = arith.addi %g, %c1 : index
  %f = memref.load %offsets[%g] : memref<?x{type}>
  %l = memref.load %offsets[%next] : memref<?x{type}>
  %first = arith.index_cast %f : {type} to index
  %last = arith.index_cast %l : {type} to index
  %b = memref.load %bias[%g] : memref<?xf32>
  scf.for %i = %first to %last step %c8 {{
    %t = frag.load %x[%i, 0] masked : memref<?x32xf32> -> !frag.tile<8x32xf32>
    %u = frag.map %t : !frag.tile<8x32xf32> -> !frag.tile<8x32xf32> {{
    ^bb0(%v: f32):
      %w = arith.addf %v, %b : f32
      frag.yield %w : f32
    }}
    frag.store %u, %y[%i, 0] masked : !frag.tile<8x32xf32>, memref<?x32xf32>
  }}
  func.return
}}"""


def arguments(offsets: list[int], dtype: type[np.integer[Any]], rows: int) -> list[Array]:
    rng = np.random.default_rng(rows)
    x = rng.integers(-9, 9, (rows, 32)).astype(np.float32)
    bias = np.arange(1, len(offsets), dtype=np.float32) * 100
    return [x, np.array(offsets, dtype), bias, np.zeros_like(x)]


@pytest.mark.parametrize(("type_", "dtype"), [("i32", np.int32), ("i8", np.int8)])
@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
def test_ragged_rows(type_: str, dtype: type[np.integer[Any]], target: str) -> None:
    """Groups of whole tiles, so that they do not meet; one of them is empty."""
    offsets = [0, 16, 16, 24, 40, 48]
    text = RAGGED.format(type=type_)
    kernel = fragir.compile(text, target=target)
    assert kernel.assembled.warnings == []
    given = arguments(offsets, dtype, 48)
    report = kernel.launch((5,), None, *given, on="emulator", check=True)
    assert report.findings == []
    x, _, bias, y = given
    assert np.array_equal(y, x + np.repeat(bias, np.diff(offsets))[:, None])
    fresh = arguments(offsets, dtype, 48)
    expected = evaluate(function(text), fresh, target=target, grid=(5, 1, 1))[3]
    assert expected is not None
    assert expected.exact
    assert np.array_equal(expected.value, y)


def function(text: str) -> func.FuncOp:
    return next(op for op in parse(text).ops if isinstance(op, func.FuncOp))


def test_an_index_outside_is_told_with_its_place() -> None:
    given = arguments([0, 8, 16], np.int32, 16)  # of three groups where the grid has five
    with pytest.raises(FragirError, match="index 3 lies outside of a dimension of 3") as caught:
        evaluate(function(RAGGED.format(type="i32")), given, target="sm_80", grid=(5, 1, 1))
    assert caught.value.line is not None


@pytest.mark.parametrize(
    ("type_", "dtype", "cast"),
    [
        ("f16", np.float16, "arith.extf %b : f16 to f32"),
        ("f64", np.float64, "arith.truncf %b : f64 to f32"),
        ("i8", np.int8, "arith.sitofp %b : i8 to f32"),
    ],
)
def test_types(type_: str, dtype: type[Any], cast: str) -> None:
    text = f"""
    func.func @k(%s: memref<3x5x{type_}>, %y: memref<32xf32>, %i: index, %j: index) {{
      %b = memref.load %s[%i, %j] : memref<3x5x{type_}>
      %w = {cast}
      %t = frag.fill %w : !frag.tile<32xf32>
      frag.store %t, %y[0] : !frag.tile<32xf32>, memref<32xf32>
      func.return
    }}"""
    s, y = (np.arange(15) - 7).reshape(3, 5).astype(dtype), np.zeros(32, np.float32)
    kernel = fragir.compile(text, target="sm_80")
    assert kernel.assembled.warnings == []
    kernel.launch((1,), None, s, y, 1, 3, on="emulator", check=True)
    assert (y == 1).all()
    kernel.launch((1,), None, s, y, 0, 0, on="emulator", check=True)
    assert (y == -7).all()
