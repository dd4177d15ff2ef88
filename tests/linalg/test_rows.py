"""Reductions along rows, and what stands between them, as one kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import fragir
from fragir.host import Program

KINDS = {
    "arith.addf": ("f32", np.add),
    "arith.maximumf": ("f32", np.maximum),
    "arith.minimumf": ("f16", np.minimum),
    "arith.mulf": ("f32", np.multiply),
    "arith.addi": ("i32", np.add),
    "arith.maxsi": ("i32", np.maximum),
    "arith.minsi": ("i32", np.minimum),
    "arith.xori": ("i32", np.bitwise_xor),
}
ARRAYS: dict[str, Any] = {"f32": np.float32, "f16": np.float16, "i32": np.int32}


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_any_dimensions(data: st.DataObject) -> None:
    """Of whole numbers, so that every order gives the same; what it begins with counts."""
    name = data.draw(st.sampled_from(sorted(KINDS)))
    element, function = KINDS[name]
    rank = data.draw(st.integers(2, 4))
    shape = [data.draw(st.sampled_from([0, 1, 2, 3, 7, 16, 33])) for _ in range(rank)]
    # dimensions that lie behind each other, but not all
    first = data.draw(st.integers(0, rank - 1))
    last = data.draw(st.integers(first, min(first + rank - 2, rank - 1)))
    gone = list(range(first, last + 1))
    kept = [size for d, size in enumerate(shape) if d not in gone]
    assume(np.prod([shape[d] for d in gone]) <= 8192)
    source = f"memref<{'x'.join(map(str, shape))}x{element}>"
    output = f"memref<{'x'.join(map(str, kept))}x{element}>"
    first_number = data.draw(st.integers(-4, 4))
    start = f"{first_number}.0" if element[0] == "f" else str(first_number)
    kernel = fragir.compile(
        f"""func.func @f(%a: {source}, %o: {output}) {{
  %x = arith.constant {start} : {element}
  linalg.fill ins(%x : {element}) outs(%o : {output})
  linalg.reduce {{ {name} }} ins(%a : {source}) outs(%o : {output}) dimensions = {gone}
  func.return
}}""",
        target=data.draw(st.sampled_from(["sm_80", "sm_90a"])),
    )
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    low, high = (1, 2) if name == "arith.mulf" else (-4, 5)
    a = rng.integers(low, high + 1, shape).astype(ARRAYS[element])
    if name == "arith.mulf":
        a = np.where(rng.random(shape) < 0.9, 1, a).astype(ARRAYS[element])
    o = np.zeros(kept, ARRAYS[element])
    begin = np.full(kept, first_number, ARRAYS[element])
    expected = begin
    if a.size:
        expected = function(begin, function.reduce(a, axis=tuple(gone)))
    report = kernel(a, o, on="emulator", check=True)
    assert report.findings == []
    assert np.array_equal(o, expected)


def layer_norm(rows: int, columns: int) -> str:
    x, r = f"tensor<{rows}x{columns}xf32>", f"tensor<{rows}xf32>"
    return f"""
#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
#col = affine_map<(i, j) -> (j)>
func.func @f(%x: {x}, %g: tensor<{columns}xf32>, %o: {x}) -> {x} {{
  %zero = arith.constant 0.0 : f32
  %one = arith.constant {1 / columns:.9e} : f32
  %eps = arith.constant 1.0e-5 : f32
  %e = tensor.empty() : {r}
  %w = tensor.empty() : {x}
  %f = linalg.fill ins(%zero : f32) outs(%e : {r}) -> {r}
  %s = linalg.reduce {{ arith.addf }} ins(%x : {x}) outs(%f : {r}) dimensions = [1]
  %c = linalg.generic {{indexing_maps = [#id, #row, #id],
                       iterator_types = ["parallel", "parallel"]}}
      ins(%x, %s : {x}, {r}) outs(%w : {x}) {{
  ^bb0(%v: f32, %t: f32, %old: f32):
    %m = arith.mulf %t, %one : f32
    %d = arith.subf %v, %m : f32
    linalg.yield %d : f32
  }} -> {x}
  %q = linalg.generic {{indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}}
      ins(%c : {x}) outs(%f : {r}) {{
  ^bb0(%v: f32, %old: f32):
    %d = arith.mulf %v, %v : f32
    %t = arith.addf %d, %old : f32
    linalg.yield %t : f32
  }} -> {r}
  %y = linalg.generic {{indexing_maps = [#id, #row, #col, #id],
                       iterator_types = ["parallel", "parallel"]}}
      ins(%c, %q, %g : {x}, {r}, tensor<{columns}xf32>) outs(%o : {x}) {{
  ^bb0(%v: f32, %t: f32, %h: f32, %old: f32):
    %m = arith.mulf %t, %one : f32
    %n = arith.addf %m, %eps : f32
    %k = math.rsqrt %n : f32
    %d = arith.mulf %v, %k : f32
    %z = arith.mulf %d, %h : f32
    linalg.yield %z : f32
  }} -> {x}
  return %y : {x}
}}"""


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("sizes", [(33, 70), (5, 1024), (3, 4096), (3, 9001)])
def test_a_norm_is_one_kernel(sizes: tuple[int, int], target: str) -> None:
    kernel = fragir.compile(layer_norm(*sizes), target=target)
    assert not kernel.is_program
    rng = np.random.default_rng(0)
    x, g = rng.standard_normal(sizes).astype(np.float32), rng.random(sizes[1]).astype(np.float32)
    o = np.zeros(sizes, np.float32)
    kernel(x, g, o, on="emulator")
    centred = x - x.mean(1, keepdims=True)
    expected = centred / np.sqrt((centred**2).mean(1, keepdims=True) + 1e-5) * g
    np.testing.assert_allclose(o, expected, atol=2e-5)
    (info,) = kernel.assembled.entries.values()
    assert info.spill_stores == 0


def softmax(shape: str, dimension: int) -> str:
    x = f"tensor<{shape}xf32>"
    return f"""func.func @f(%x: {x}, %o: {x}) -> {x} {{
  %r = linalg.softmax dimension({dimension}) ins(%x : {x}) outs(%o : {x}) -> {x}
  return %r : {x}
}}"""


@pytest.mark.parametrize(("shape", "dimension"), [("33x70", 1), ("4x9x64", 2), ("40x12", 0)])
def test_softmax_is_one_kernel(shape: str, dimension: int) -> None:
    kernel = fragir.compile(softmax(shape, dimension), target="sm_80")
    assert not kernel.is_program
    sizes = [int(size) for size in shape.split("x")]
    x = np.random.default_rng(0).standard_normal(sizes).astype(np.float32)
    o = np.zeros_like(x)
    report = kernel(x, o, on="emulator", check=True)
    assert report.findings == []
    powers = np.exp(x - x.max(dimension, keepdims=True))
    np.testing.assert_allclose(o, powers / powers.sum(dimension, keepdims=True), atol=1e-6)


def test_a_product_and_a_softmax() -> None:
    """Two kernels, and what is between them."""
    text = """func.func @f(%q: tensor<40x64xf16>, %k: tensor<72x64xf16>, %o: tensor<40x72xf32>)
    -> tensor<40x72xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<40x72xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<40x72xf32>) -> tensor<40x72xf32>
  %s = linalg.matmul_transpose_b ins(%q, %k : tensor<40x64xf16>, tensor<72x64xf16>)
      outs(%f : tensor<40x72xf32>) -> tensor<40x72xf32>
  %r = linalg.softmax dimension(1) ins(%s : tensor<40x72xf32>)
      outs(%o : tensor<40x72xf32>) -> tensor<40x72xf32>
  return %r : tensor<40x72xf32>
}"""
    program = fragir.compile(text, target="sm_80")
    assert isinstance(program, Program)
    assert len(program.plan.launches) == 2
    rng = np.random.default_rng(0)
    q, k = ((rng.standard_normal((n, 64)) / 4).astype(np.float16) for n in (40, 72))
    o = np.zeros((40, 72), np.float32)
    report = program(q, k, o, on="emulator", check=True)
    assert report.findings == []
    scores = q.astype(np.float32) @ k.astype(np.float32).T
    powers = np.exp(scores - scores.max(1, keepdims=True))
    np.testing.assert_allclose(o, powers / powers.sum(1, keepdims=True), atol=1e-5)


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("shape", [(5, 700), (33, 3), (1, 5000), (3, 0), (0, 4), (17, 256)])
def test_rows_of_any_length(shape: tuple[int, int], target: str) -> None:
    """Rows that registers do not hold are read again for each step, by one kernel."""
    kernel = fragir.compile(softmax("?x?", 1), target=target)
    assert isinstance(kernel, fragir.Kernel)
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    o = np.zeros_like(x)
    assert kernel(x, o, on="emulator", check=True).findings == []
    powers = np.exp(x - x.max(1, keepdims=True, initial=-np.inf))
    np.testing.assert_allclose(o, powers / powers.sum(1, keepdims=True), atol=1e-6)
