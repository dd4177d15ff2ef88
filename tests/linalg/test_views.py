"""Parts and other shapes of tensors, and what is put together of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fragir
from tests.linalg.judging import judged

Array = npt.NDArray[Any]


def numbers(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def doubled(source: str, type_: str) -> str:
    """%r, twice a tensor, in a new one of static size."""
    return f"""%e = tensor.empty() : {type_}
  %r = linalg.add ins({source}, {source} : {type_}, {type_}) outs(%e : {type_}) -> {type_}"""


def test_a_part_is_read() -> None:
    a = numbers(20, 40)
    text = f"""func.func @f(%a: tensor<20x40xf32>) -> tensor<7x16xf32> {{
  %p = tensor.extract_slice %a[3, 5] [7, 16] [2, 1] : tensor<20x40xf32> to tensor<7x16xf32>
  {doubled("%p", "tensor<7x16xf32>")}
  return %r : tensor<7x16xf32>
}}"""
    (found,) = judged(text, "a", [a], "sm_80")
    assert np.array_equal(found, 2 * a[3:17:2, 5:21])


def test_a_part_of_what_is_computed_is_read() -> None:
    """Rows of a part do not lie behind each other, as its loops alone would have it."""
    a = numbers(8, 8)
    text = """func.func @f(%a: tensor<8x8xf32>) -> tensor<4x4xf32> {
  %e = tensor.empty() : tensor<8x8xf32>
  %v = linalg.add ins(%a, %a : tensor<8x8xf32>, tensor<8x8xf32>) outs(%e : tensor<8x8xf32>)
    -> tensor<8x8xf32>
  %p = tensor.extract_slice %v[0, 0] [4, 4] [1, 1] : tensor<8x8xf32> to tensor<4x4xf32>
  %n = tensor.empty() : tensor<4x4xf32>
  %r = linalg.add ins(%p, %p : tensor<4x4xf32>, tensor<4x4xf32>) outs(%n : tensor<4x4xf32>)
    -> tensor<4x4xf32>
  return %r : tensor<4x4xf32>
}"""
    (found,) = judged(text, "a", [a], "sm_80")
    assert np.array_equal(found, 4 * a[:4, :4])


def test_a_part_is_written() -> None:
    a, b = numbers(20, 40), numbers(7, 16, seed=1)
    text = f"""func.func @f(%a: tensor<20x40xf32>, %b: tensor<7x16xf32>) -> tensor<20x40xf32> {{
  {doubled("%b", "tensor<7x16xf32>")}
  %o = tensor.insert_slice %r into %a[3, 5] [7, 16] [2, 1] : tensor<7x16xf32> into tensor<20x40xf32>
  return %o : tensor<20x40xf32>
}}"""
    wanted = a.copy()
    wanted[3:17:2, 5:21] = 2 * b
    (found,) = judged(text, "ab", [a, b], "sm_80")
    assert np.array_equal(found, wanted)


@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_random_parts(data: st.DataObject) -> None:
    """Of sizes that a launch knows; what is left out has size 1."""
    shape = [data.draw(st.integers(1, 24)) for _ in range(3)]
    steps = [data.draw(st.integers(1, 3)) for _ in shape]
    first = [data.draw(st.integers(0, n - 1)) for n in shape]
    sizes = [
        data.draw(st.integers(0 if d else 1, (n - at - 1) // s + 1))
        for d, (n, at, s) in enumerate(zip(shape, first, steps, strict=True))
    ]
    drop = data.draw(st.booleans())
    if drop:
        sizes[0] = 1
    dynamic = data.draw(st.booleans())
    whole = "tensor<?x?x?xf32>" if dynamic else f"tensor<{'x'.join(map(str, shape))}xf32>"
    part = f"tensor<{'x'.join(map(str, sizes[drop:]))}xf32>"
    lists = " ".join(str(x) for x in (first, sizes, steps))
    text = f"""func.func @f(%a: {whole}, %b: {part}) -> {whole} {{
  %p = tensor.extract_slice %a{lists} : {whole} to {part}
  %e = tensor.empty() : {part}
  %s = linalg.sub ins(%b, %p : {part}, {part}) outs(%e : {part}) -> {part}
  %o = tensor.insert_slice %s into %a{lists} : {part} into {whole}
  return %o : {whole}
}}"""
    a, b = numbers(*shape), numbers(*sizes[drop:], seed=1)
    wanted = a.copy()
    place = tuple(
        slice(at, at + (n - 1) * s + 1 if n else at, s)
        for at, n, s in zip(first, sizes, steps, strict=True)
    )
    wanted[place] = b.reshape(sizes) - wanted[place]
    (found,) = judged(text, "ab", [a, b], data.draw(st.sampled_from(["sm_80", "sm_90a"])))
    assert np.array_equal(found, wanted)


@pytest.mark.parametrize("dynamic", [False, True])
def test_other_shapes(dynamic: bool) -> None:
    a = numbers(6, 4, 8)
    whole, flat = ("tensor<?x4x8xf32>", "tensor<?x8xf32>") if dynamic else (
        "tensor<6x4x8xf32>", "tensor<24x8xf32>")  # fmt: skip
    split = "tensor<?x2x8xf32>" if dynamic else "tensor<12x2x8xf32>"
    sizes = "[%n, 2, 8]" if dynamic else "[12, 2, 8]"
    text = f"""func.func @f(%a: {whole}) -> {split} {{
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %m = tensor.dim %a, %c0 : {whole}
  %n = arith.muli %m, %c2 : index
  %c = tensor.collapse_shape %a [[0, 1], [2]] : {whole} into {flat}
  %x = tensor.expand_shape %c [[0, 1], [2]] output_shape {sizes} : {flat} into {split}
  %e = tensor.empty({"%n" if dynamic else ""}) : {split}
  %o = linalg.exp ins(%x : {split}) outs(%e : {split}) -> {split}
  return %o : {split}
}}"""
    (found,) = judged(text, "a", [a], "sm_80", {"n3": 12} if dynamic else None)
    assert np.allclose(found, np.exp(a.reshape(12, 2, 8)), rtol=1e-5)


# --- what is put together -------------------------------------------------------------------------


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize(("low", "high"), [((1, 2), (1, 3)), ((0, 0), (0, 5)), ((3, 0), (0, 0))])
def test_padding(low: tuple[int, int], high: tuple[int, int], dynamic: bool) -> None:
    a = numbers(9, 17)
    wanted = np.pad(a, list(zip(low, high, strict=True)), constant_values=1.5)
    source, whole = ("tensor<?x?xf32>",) * 2 if dynamic else (
        "tensor<9x17xf32>", f"tensor<{wanted.shape[0]}x{wanted.shape[1]}xf32>")  # fmt: skip
    text = f"""func.func @f(%a: {source}) -> {whole} {{
  %v = arith.constant 1.5 : f32
  %o = tensor.pad %a low{list(low)} high{list(high)} {{
  ^bb0(%i: index, %j: index):
    tensor.yield %v : f32
  }} : {source} to {whole}
  return %o : {whole}
}}"""
    sizes = {f"n{2 + d}": n for d, n in enumerate(wanted.shape)} if dynamic else None
    (found,) = judged(text, "a", [a], "sm_80", sizes)
    assert np.array_equal(found, wanted)


def test_padding_by_place() -> None:
    a = numbers(4, 6)
    text = """func.func @f(%a: tensor<4x6xf32>) -> tensor<6x8xf32> {
  %o = tensor.pad %a low[1, 1] high[1, 1] {
  ^bb0(%i: index, %j: index):
    %s = arith.addi %i, %j : index
    %t = arith.index_cast %s : index to i32
    %v = arith.sitofp %t : i32 to f32
    tensor.yield %v : f32
  } : tensor<4x6xf32> to tensor<6x8xf32>
  return %o : tensor<6x8xf32>
}"""
    wanted = np.add.outer(np.arange(6), np.arange(8)).astype(np.float32)
    wanted[1:-1, 1:-1] = a
    (found,) = judged(text, "a", [a], "sm_80")
    assert np.array_equal(found, wanted)


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
def test_a_padded_convolution(target: str) -> None:
    rng = np.random.default_rng(0)
    a = rng.integers(-4, 5, (2, 8, 8, 16)).astype(np.float16)
    w = rng.integers(-4, 5, (3, 3, 16, 8)).astype(np.float16)
    text = """func.func @f(%a: tensor<2x8x8x16xf16>, %w: tensor<3x3x16x8xf16>)
    -> tensor<2x8x8x8xf32> {
  %zero = arith.constant 0.0 : f16
  %none = arith.constant 0.0 : f32
  %p = tensor.pad %a low[0, 1, 1, 0] high[0, 1, 1, 0] {
  ^bb0(%n: index, %i: index, %j: index, %c: index):
    tensor.yield %zero : f16
  } : tensor<2x8x8x16xf16> to tensor<2x10x10x16xf16>
  %e = tensor.empty() : tensor<2x8x8x8xf32>
  %f = linalg.fill ins(%none : f32) outs(%e : tensor<2x8x8x8xf32>) -> tensor<2x8x8x8xf32>
  %o = linalg.conv_2d_nhwc_hwcf
      ins(%p, %w : tensor<2x10x10x16xf16>, tensor<3x3x16x8xf16>)
      outs(%f : tensor<2x8x8x8xf32>) -> tensor<2x8x8x8xf32>
  return %o : tensor<2x8x8x8xf32>
}"""
    wide = np.pad(a.astype(np.float32), ((0, 0), (1, 1), (1, 1), (0, 0)))
    wanted = sum(
        np.einsum("nijc,cf->nijf", wide[:, y : y + 8, x : x + 8], w[y, x].astype(np.float32))
        for y in range(3)
        for x in range(3)
    )
    (found,) = judged(text, "aw", [a, w], target)
    assert np.array_equal(found, wanted)


@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("dynamic", [False, True])
def test_joining(dim: int, dynamic: bool) -> None:
    shapes = [[5, 5], [5, 5]]
    shapes[0][dim], shapes[1][dim] = 3, 11
    a, b = numbers(*shapes[0]), numbers(*shapes[1], seed=1)
    wanted = np.concatenate([a, b], dim)
    types = [
        "tensor<?x?xf32>" if dynamic else f"tensor<{x.shape[0]}x{x.shape[1]}xf32>"
        for x in (a, b, wanted)
    ]
    text = f"""func.func @f(%a: {types[0]}, %b: {types[1]}) -> {types[2]} {{
  %o = tensor.concat dim({dim}) %a, %b : ({types[0]}, {types[1]}) -> {types[2]}
  return %o : {types[2]}
}}"""
    sizes = {f"n{4 + d}": n for d, n in enumerate(wanted.shape)} if dynamic else None
    (found,) = judged(text, "ab", [a, b], "sm_80", sizes)
    assert np.array_equal(found, wanted)


def test_tables_and_single_elements() -> None:
    a = numbers(3, 4)
    text = """func.func @f(%a: tensor<3x4xf32>, %x: f32) -> (tensor<3x4xf32>, tensor<4xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %t = arith.constant dense<[[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0],
                             [9.0, 9.0, 9.5, 0.0]]> : tensor<3x4xf32>
  %s = arith.constant dense<0.5> : tensor<3x4xf32>
  %e = tensor.empty() : tensor<3x4xf32>
  %p = linalg.add ins(%a, %t : tensor<3x4xf32>, tensor<3x4xf32>)
                  outs(%e : tensor<3x4xf32>) -> tensor<3x4xf32>
  %q = linalg.mul ins(%p, %s : tensor<3x4xf32>, tensor<3x4xf32>)
                  outs(%e : tensor<3x4xf32>) -> tensor<3x4xf32>
  %r = tensor.insert %x into %q[%c1, %c2] : tensor<3x4xf32>
  %one = tensor.extract %a[%c2, %c1] : tensor<3x4xf32>
  %w = tensor.from_elements %x, %x, %x, %x : tensor<4xf32>
  %g = tensor.empty() : tensor<4xf32>
  %b = linalg.fill ins(%one : f32) outs(%g : tensor<4xf32>) -> tensor<4xf32>
  %v = linalg.sub ins(%w, %b : tensor<4xf32>, tensor<4xf32>)
                  outs(%g : tensor<4xf32>) -> tensor<4xf32>
  return %r, %v : tensor<3x4xf32>, tensor<4xf32>
}"""
    table = np.array([[1, 2, 3, 4], [5, 6, 7, 8], [9, 9, 9.5, 0]], np.float32)
    wanted = (a + table) * np.float32(0.5)
    wanted[1, 2] = 1
    first, second = judged(text, "a", [a], "sm_80")
    assert np.array_equal(first, wanted)
    assert np.array_equal(second, np.full(4, 1 - a[2, 1]))


def test_an_element_that_a_product_has_computed() -> None:
    """An element is read where it is used: by a kernel behind that of the product."""
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-3, 4, (16, 16)).astype(np.float16) for _ in range(2))
    m = "tensor<16x16xf32>"
    text = f"""func.func @f(%a: tensor<16x16xf16>, %b: tensor<16x16xf16>) -> {m} {{
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : {m}
  %z = linalg.fill ins(%zero : f32) outs(%e : {m}) -> {m}
  %p = linalg.matmul ins(%a, %b : tensor<16x16xf16>, tensor<16x16xf16>) outs(%z : {m}) -> {m}
  %x = tensor.extract %p[%c1, %c1] : {m}
  %s = tensor.splat %x : {m}
  %o = linalg.sub ins(%p, %s : {m}, {m}) outs(%e : {m}) -> {m}
  return %o : {m}
}}"""
    product = a.astype(np.float32) @ b.astype(np.float32)
    (found,) = judged(text, "ab", [a, b], "sm_80")
    assert np.array_equal(found, product - product[1, 1])


def test_padding_of_what_was_computed() -> None:
    """A body that reads memory at places of its own waits for the kernel that fills it."""
    a = numbers(40, 48)
    text = """func.func @f(%a: tensor<40x48xf32>) -> tensor<44x50xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<40x48xf32>
  %h = linalg.exp ins(%a : tensor<40x48xf32>) outs(%e : tensor<40x48xf32>) -> tensor<40x48xf32>
  %o = tensor.pad %h low[3, 1] high[1, 1] {
  ^bb0(%i: index, %j: index):
    tensor.yield %zero : f32
  } : tensor<40x48xf32> to tensor<44x50xf32>
  return %o : tensor<44x50xf32>
}"""
    (found,) = judged(text, "a", [a], "sm_80")
    assert np.allclose(found, np.pad(np.exp(a), ((3, 1), (1, 1))), rtol=1e-5)


# --- tiles ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("dialect", ["tensor", "linalg"])
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("rows", [16, 13])
def test_tiles_and_back(rows: int, turned: bool, dialect: str) -> None:
    """Of tiles of 8 x 4, the last of which are padded; and without what they have too much."""
    a = numbers(rows, 12)
    counts = "3x2" if turned else "2x3"
    order = "outer_dims_perm = [1, 0] " if turned else ""
    padding = "padding_value(%v : f32) " if rows % 8 else ""
    lists = f"{order}inner_dims_pos = [0, 1] inner_tiles = [8, 4]"
    m, p = f"tensor<{rows}x12xf32>", f"tensor<{counts}x8x4xf32>"
    text = f"""func.func @f(%a: {m}) -> ({p}, {m}) {{
  %v = arith.constant 7.0 : f32
  %e = tensor.empty() : {p}
  %o = {dialect}.pack %a {padding}{lists} into %e : {m} -> {p}
  %d = tensor.empty() : {p}
  %s = linalg.add ins(%o, %o : {p}, {p}) outs(%d : {p}) -> {p}
  %g = tensor.empty() : {m}
  %b = {dialect}.unpack %s {lists} into %g : {p} -> {m}
  return %o, %b : {p}, {m}
}}"""
    wide = np.pad(a, ((0, -rows % 8), (0, 0)), constant_values=7)
    wanted = wide.reshape(2, 8, 3, 4).transpose((2, 0, 1, 3) if turned else (0, 2, 1, 3))
    packed, back = judged(text, "a", [a], "sm_80")
    assert np.array_equal(packed, wanted)
    assert np.array_equal(back, 2 * a)


def test_memory_in_tiles() -> None:
    """As of version 21 of MLIR; what is written needs no result."""
    a = numbers(13, 12)
    m, p = "memref<?x12xf32>", "memref<?x3x8x4xf32>"
    lists = "inner_dims_pos = [0, 1] inner_tiles = [8, 4] into"
    text = f"""func.func @f(%a: {m}, %o: {p}, %b: {m}) {{
  %v = arith.constant 7.0 : f32
  linalg.pack %a padding_value(%v : f32) {lists} %o : {m} -> {p}
  linalg.unpack %o {lists} %b : {p} -> {m}
  return
}}"""
    packed, back = judged(text, "a", [a], "sm_80", {"n2": 2, "n6": 13})
    wide = np.pad(a, ((0, 3), (0, 0)), constant_values=7)
    assert np.array_equal(packed, wide.reshape(2, 8, 3, 4).transpose(0, 2, 1, 3))
    assert np.array_equal(back, a)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("linalg.pack %a inner_dims_pos = [0] inner_tiles = [4] into %o", "two tensors, or two"),
        ("tensor.pack %m inner_dims_pos = [0] inner_tiles = [4] into %o", "takes two tensors"),
        ("linalg.pack %m inner_dims_pos = [0] inner_tiles = [5] into %o", "end in its tiles"),
        ("linalg.pack %m inner_dims_pos = [1] inner_tiles = [4] into %o", "dimensions of 1"),
        ("linalg.pack %m inner_dims_pos = [0] inner_tiles = [%s] into %o", "number expected"),
    ],
)
def test_tiles_that_are_none(text: str, word: str) -> None:
    source = "tensor<8xf32>" if "%a" in text else "memref<8xf32>"
    m, o = "memref<8xf32>", "memref<2x4xf32>"
    module = f"""func.func @f(%a: tensor<8xf32>, %m: {m}, %o: {o}, %s: index) {{
  {text} : {source} -> {o}
  return
}}"""
    with pytest.raises(fragir.FragirError, match=word):
        fragir.compile(module, target="sm_80")


def test_one_dimension_in_tiles_of_any_length() -> None:
    a = numbers(5, 21)
    text = """func.func @f(%a: tensor<?x?xf32>, %v: f32) -> tensor<?x?x4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %m = tensor.dim %a, %c0 : tensor<?x?xf32>
  %n = tensor.dim %a, %c1 : tensor<?x?xf32>
  %q = arith.ceildivui %n, %c4 : index
  %e = tensor.empty(%m, %q) : tensor<?x?x4xf32>
  %o = tensor.pack %a padding_value(%v : f32) inner_dims_pos = [1] inner_tiles = [4]
      into %e : tensor<?x?xf32> -> tensor<?x?x4xf32>
  return %o : tensor<?x?x4xf32>
}"""
    (found,) = judged(text, "a", [a], "sm_80", {"n2": 5, "n3": 6})
    wanted = np.pad(a, ((0, 0), (0, 3)), constant_values=1).reshape(5, 6, 4)
    assert np.array_equal(found, wanted)


def test_what_a_region_gives() -> None:
    a = numbers(7)
    text = """func.func @f(%a: tensor<?xf32>) -> tensor<?x3xf32> {
  %c0 = arith.constant 0 : index
  %m = tensor.dim %a, %c0 : tensor<?xf32>
  %o = tensor.generate %m {
  ^bb0(%i: index, %j: index):
    %x = tensor.extract %a[%i] : tensor<?xf32>
    %n = arith.index_cast %j : index to i32
    %f = arith.sitofp %n : i32 to f32
    %y = arith.addf %x, %f : f32
    tensor.yield %y : f32
  } : tensor<?x3xf32>
  return %o : tensor<?x3xf32>
}"""
    (found,) = judged(text, "a", [a], "sm_80", {"n1": 7})
    assert np.array_equal(found, a[:, None] + np.arange(3, dtype=np.float32))
