"""Products of floats into bf16 and 8-bit floats: formed in f32, rounded once."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

import fragir
from tests.linalg.judging import judged

Array = npt.NDArray[Any]
BF16: Any = ml_dtypes.bfloat16


def numbers(*shape: int, seed: int = 0, dtype: Any = BF16) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def off(found: Array, wanted: Array) -> float:
    """The largest difference of bits of bf16 from numbers, in steps of bf16 at the largest one."""
    exact = np.asarray(wanted, np.float64)
    step = float(np.spacing(np.abs(exact).max().astype(BF16)))
    return float(np.abs(found.view(BF16).astype(np.float64) - exact).max()) / step


def matmul(sizes: str, start: str, kind: str = "bf16", inputs: str = "bf16") -> str:
    """A product of m x k by k x n that begins with zeros or with what %c holds."""
    m, k, n = sizes.split()
    a, b, c = f"tensor<{m}x{k}x{inputs}>", f"tensor<{k}x{n}x{inputs}>", f"tensor<{m}x{n}x{kind}>"
    fill = f"""  %zero = arith.constant 0.0 : {kind}
  %s = linalg.fill ins(%zero : {kind}) outs(%c : {c}) -> {c}
"""
    return f"""func.func @f(%a: {a}, %b: {b}, %c: {c}) -> {c} {{
{fill if start == "%s" else ""}  %r = linalg.matmul ins(%a, %b : {a}, {b})
      outs({start} : {c}) -> {c}
  return %r : {c}
}}"""


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("start", ["%s", "%c"])
@pytest.mark.parametrize("sizes", ["100 250 72", "? ? ?"])
def test_by_tensor_cores_in_one_kernel(sizes: str, start: str, target: str) -> None:
    a, b, c = numbers(100, 250), numbers(250, 72, seed=1), numbers(100, 72, seed=2)
    text = matmul(sizes, start)
    (found,) = judged(text, "abc", [a, b, c], target)
    wanted = a.astype(np.float64) @ b.astype(np.float64)
    assert off(found, wanted + (c.astype(np.float64) if start == "%c" else 0)) <= 0.51
    built = fragir.compile(text, target=target)
    assert not hasattr(built, "kernels")
    assert "mma" in built.ptx


def test_eight_bits_into_bf16() -> None:
    dtype: Any = ml_dtypes.float8_e4m3fn
    a, b = numbers(32, 64, dtype=dtype), numbers(64, 40, seed=1, dtype=dtype)
    text = matmul("32 64 40", "%s", inputs="f8E4M3FN")
    (found,) = judged(text, "abc", [a, b, np.zeros((32, 40), BF16)], "sm_90a")
    assert off(found, a.astype(np.float64) @ b.astype(np.float64)) <= 0.51
    assert "mma" in fragir.compile(text, target="sm_90a").ptx


@pytest.mark.parametrize("shaped", ["memref", "tensor"])
def test_generics_with_transposed_operands(shaped: str) -> None:
    """Also on memory, and without extensions in the body; what the output held is added."""
    a, b, c = numbers(33, 70), numbers(24, 70, seed=1), numbers(33, 24, seed=2)
    types = [f"{shaped}<33x70xbf16>", f"{shaped}<24x70xbf16>", f"{shaped}<33x24xbf16>"]
    result = f" -> {types[2]}" if shaped == "tensor" else ""
    text = f"""func.func @f(%a: {types[0]}, %b: {types[1]}, %c: {types[2]}){result} {{
  {"%r = " if result else ""}linalg.generic {{
      indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>,
                       affine_map<(m, n, k) -> (m, n)>],
      iterator_types = ["parallel", "parallel", "reduction"]}}
      ins(%a, %b : {types[0]}, {types[1]}) outs(%c : {types[2]}) {{
  ^bb0(%x: bf16, %y: bf16, %o: bf16):
    %p = arith.mulf %y, %x : bf16
    %q = arith.addf %p, %o : bf16
    linalg.yield %q : bf16
  }}{result}
  return{f" %r : {types[2]}" if result else ""}
}}"""
    (found,) = judged(text, "abc", [a, b, c], "sm_80")
    wanted = a.astype(np.float64) @ b.astype(np.float64).T + c.astype(np.float64)
    assert off(found, wanted) <= 0.51
    assert "mma" in fragir.compile(text, target="sm_80").ptx


@pytest.mark.parametrize("k", [7, 300, 5000])
def test_a_matrix_times_a_vector(k: int) -> None:
    a, x = numbers(19, k), numbers(k, seed=1)
    text = f"""func.func @f(%a: tensor<19x{k}xbf16>, %x: tensor<{k}xbf16>) -> tensor<19xbf16> {{
  %zero = arith.constant 0.0 : bf16
  %e = tensor.empty() : tensor<19xbf16>
  %s = linalg.fill ins(%zero : bf16) outs(%e : tensor<19xbf16>) -> tensor<19xbf16>
  %r = linalg.matvec ins(%a, %x : tensor<19x{k}xbf16>, tensor<{k}xbf16>)
      outs(%s : tensor<19xbf16>) -> tensor<19xbf16>
  return %r : tensor<19xbf16>
}}"""
    (found,) = judged(text, "ax", [a, x], "sm_80")
    assert off(found, a.astype(np.float64) @ x.astype(np.float64)) <= 0.51


def test_heads_of_attention() -> None:
    """Scores of a batch, which the next operation reads in bf16."""
    q, k = numbers(3, 20, 32), numbers(3, 24, 32, seed=1)
    text = """#every = affine_map<(b, i, j) -> (b, i, j)>
func.func @f(%q: tensor<3x20x32xbf16>, %k: tensor<3x24x32xbf16>) -> tensor<3x20x24xbf16> {
  %zero = arith.constant 0.0 : bf16
  %scale = arith.constant 0.125 : bf16
  %e = tensor.empty() : tensor<3x20x24xbf16>
  %s = linalg.fill ins(%zero : bf16) outs(%e : tensor<3x20x24xbf16>) -> tensor<3x20x24xbf16>
  %p = linalg.batch_matmul_transpose_b
      ins(%q, %k : tensor<3x20x32xbf16>, tensor<3x24x32xbf16>)
      outs(%s : tensor<3x20x24xbf16>) -> tensor<3x20x24xbf16>
  %r = linalg.generic {indexing_maps = [#every, #every],
      iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%p : tensor<3x20x24xbf16>) outs(%e : tensor<3x20x24xbf16>) {
  ^bb0(%x: bf16, %o: bf16):
    %y = arith.mulf %x, %scale : bf16
    linalg.yield %y : bf16
  } -> tensor<3x20x24xbf16>
  return %r : tensor<3x20x24xbf16>
}"""
    (found,) = judged(text, "qk", [q, k], "sm_90a")
    wanted = q.astype(np.float64) @ k.astype(np.float64).transpose(0, 2, 1) / 8
    assert off(found, wanted) <= 0.51
    built = fragir.compile(text, target="sm_90a")
    assert not hasattr(built, "kernels")


def test_sums_of_f16_stay() -> None:
    """Tensor cores sum them."""
    text = matmul("64 64 64", "%s", kind="f16", inputs="f16")
    assert ".f16.f16.f16.f16" in fragir.compile(text, target="sm_80").ptx


def test_sizes_that_do_not_go_with_each_other() -> None:
    """A window that leaves its input is an error of sizes, not one of Python."""
    text = """func.func @f(%x: tensor<?xf32>, %w: tensor<3xf32>, %o: tensor<?xf32>)
    -> tensor<?xf32> {
  %r = linalg.conv_1d ins(%x, %w : tensor<?xf32>, tensor<3xf32>) outs(%o : tensor<?xf32>)
      -> tensor<?xf32>
  return %r : tensor<?xf32>
}"""
    arrays = [numbers(*shape, dtype=np.float32) for shape in ((8,), (3,), (7,))]
    with pytest.raises(fragir.FragirError, match="sizes have to go with each other"):
        judged(text, "xwo", arrays, "sm_80")
