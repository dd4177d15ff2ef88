"""What linalg-normalize makes of operations that are no named ones of linalg."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import fragir
from tests.linalg.judging import judged

Array = npt.NDArray[Any]
MAPS = """#every = affine_map<(i, j) -> (i, j)>
#turned = affine_map<(i, j) -> (j, i)>
#rows = affine_map<(i, j) -> (i)>
#columns = affine_map<(i, j) -> (j)>
"""


def numbers(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


# --- arith and math on tensors --------------------------------------------------------------------


def test_arithmetic_on_tensors() -> None:
    """As `mlir-opt --convert-elementwise-to-linalg` takes it; what is read twice is one input."""
    a, b = numbers(5, 8), numbers(5, 8, seed=1)
    text = """func.func @f(%a: tensor<?x8xf32>, %b: tensor<?x8xf32>) -> tensor<?x8xf16> {
  %s = arith.addf %a, %b : tensor<?x8xf32>
  %t = math.exp %s : tensor<?x8xf32>
  %u = arith.mulf %t, %t : tensor<?x8xf32>
  %c = arith.constant dense<1.0> : tensor<8x8xf32>
  %r = arith.truncf %u : tensor<?x8xf32> to tensor<?x8xf16>
  return %r : tensor<?x8xf16>
}"""
    (found,) = judged(text, "ab", [a, b], "sm_80")
    assert np.allclose(found, np.exp(a + b) ** 2, rtol=4e-3)
    built = fragir.compile(text, target="sm_80")
    assert len(getattr(built, "kernels", [built])) == 1


# --- outputs of which some are reduced ------------------------------------------------------------


def several(maps: str, types: str, outs: str, body: str) -> str:
    """A function of %a, 33 x 21, and outputs whose elements are %y and %z; %x is that of %a."""
    first, _, second = types.partition(", ")
    return f"""{MAPS}func.func @f(%a: tensor<33x21xf32>, %s: {first}, %t: {second}) -> ({types}) {{
  %0:2 = linalg.generic {{indexing_maps = [#every, {maps}],
      iterator_types = ["parallel", "reduction"]}}
      ins(%a : tensor<33x21xf32>) outs({outs} : {types}) {{
  ^bb0(%x: f32, %y: f32, %z: f32):
{body}
  }} -> ({types})
  return %0#0, %0#1 : {types}
}}"""


ROWS, EVERY, TURNED = "tensor<33xf32>", "tensor<33x21xf32>", "tensor<21x33xf32>"


def test_exponentials_and_their_sum() -> None:
    """As a softmax of torch that was fused before: one output is reduced, the other is not."""
    a, s, t = numbers(33, 21), numbers(33, seed=1), numbers(33, 21, seed=2)
    body = """    %p = math.exp %x : f32
    %q = arith.addf %p, %y : f32
    linalg.yield %q, %p : f32, f32"""
    text = several("#rows, #every", f"{ROWS}, {EVERY}", "%s, %t", body)
    sums, powers = judged(text, "ast", [a, s, t], "sm_80")
    assert np.allclose(powers, np.exp(a), rtol=1e-5)
    assert np.allclose(sums, s + np.exp(a).sum(1), rtol=1e-5)


def test_the_old_element_of_the_other_output() -> None:
    """It is read before it is overwritten, whatever comes first."""
    a, s, t = numbers(33, 21), numbers(33, seed=1), numbers(21, 33, seed=2)
    body = """    %p = arith.mulf %x, %z : f32
    %q = arith.addf %p, %y : f32
    linalg.yield %q, %p : f32, f32"""
    text = several("#rows, #turned", f"{ROWS}, {TURNED}", "%s, %t", body)
    sums, products = judged(text, "ast", [a, s, t], "sm_80")
    assert np.array_equal(products, a.T * t)
    assert np.allclose(sums, s + (a * t.T).sum(1), rtol=1e-4, atol=1e-5)


def test_a_scan_is_refused() -> None:
    """What is written at every turn depends on the sum up to there."""
    body = """    %q = arith.addf %x, %y : f32
    linalg.yield %q, %q : f32, f32"""
    text = several("#rows, #every", f"{ROWS}, {EVERY}", "%s, %t", body)
    with pytest.raises(fragir.FragirError, match=r"reduces|along different loops"):
        fragir.compile(text, target="sm_80")


# --- what there may be around them ----------------------------------------------------------------


def test_attributes_behind_the_operands() -> None:
    text = """func.func @f(%a: tensor<8x8xf32>, %c: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %r = linalg.exp ins(%a : tensor<8x8xf32>) outs(%c : tensor<8x8xf32>) {mine = 3 : i64}
      -> tensor<8x8xf32>
  return %r : tensor<8x8xf32>
}"""
    assert "{mine = 3 : i64}" in str(fragir.parse(text))


@pytest.mark.parametrize("passes", ["linalg-normalize", "frag-bufferize", "linalg-tile", ""])
@pytest.mark.parametrize("shaped", ["tensor", "memref"])
def test_branches_between_blocks_are_refused(shaped: str, passes: str) -> None:
    text = f"""func.func @f(%a: {shaped}<8xf32>, %b: {shaped}<8xf32>) {{
  cf.br ^next
^next:
  linalg.generic {{indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
      iterator_types = ["parallel"]}} ins(%a : {shaped}<8xf32>) outs(%b : {shaped}<8xf32>) {{
  ^bb0(%x: f32, %y: f32):
    linalg.yield %x : f32
  }}{" -> tensor<8xf32>" if shaped == "tensor" else ""}
  return
}}"""
    if passes == "frag-bufferize" and shaped == "memref":
        pytest.skip("nothing to do")
    with pytest.raises(fragir.FragirError, match=r"branches|use scf"):
        fragir.compile(text, target="sm_80", passes=passes or None)


def test_rows_of_which_there_are_more_than_a_grid_has_along_y() -> None:
    def text(rows: object, columns: object) -> str:
        return f"""func.func @f(%a: tensor<{rows}x{columns}xf32>) -> tensor<{rows}xf32> {{
  %z = arith.constant 0.0 : f32
  %e = tensor.empty({"%n" if rows == "?" else ""}) : tensor<{rows}xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<{rows}xf32>) -> tensor<{rows}xf32>
  %r = linalg.reduce {{ arith.addf }} ins(%a : tensor<{rows}x{columns}xf32>)
      outs(%f : tensor<{rows}xf32>) dimensions = [1]
  return %r : tensor<{rows}xf32>
}}""".replace(
            "  %e", "  %c0 = arith.constant 0 : index\n"
            f"  %n = tensor.dim %a, %c0 : tensor<{rows}x{columns}xf32>\n  %e"
        )  # fmt: skip

    static = fragir.compile(text(3_000_000, 8192), target="sm_80")
    assert static.grid({})[1:] == (1, 1)
    dynamic = fragir.compile(text("?", 8192), target="sm_80")
    assert dynamic.grid({"n0": 3_000_000})[1:] == (1, 1)
