"""Sorting, prefix sums, scattered updates and Fourier transforms, as torch-mlir and IREE print
them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import fragir
from tests.linalg.judging import judged

Array = npt.NDArray[Any]
RNG = np.random.default_rng(23)


def sorting(dialect: str, shape: str, dim: int, predicate: str, element: str = "f32") -> str:
    """Values and their places; the first result lies where the values did."""
    compare = "cmpf" if element[0] == "f" else "cmpi"
    values, places = f"tensor<{shape}x{element}>", f"tensor<{shape}xi64>"
    maps = ", ".join(f"d{at}" for at in range(shape.count("x") + 1))
    kinds = ", ".join(['"parallel"'] * (shape.count("x") + 1))
    return f"""#map = affine_map<({maps}) -> ({maps})>
func.func @sort(%arg0: {values}) -> ({values}, {places}) {{
  %0 = tensor.empty() : {places}
  %1 = linalg.generic {{indexing_maps = [#map], iterator_types = [{kinds}]}} outs(%0 : {places}) {{
  ^bb0(%out: i64):
    %3 = linalg.index {dim} : index
    %4 = arith.index_cast %3 : index to i64
    linalg.yield %4 : i64
  }} -> {places}
  %2:2 = {dialect}.sort dimension({dim}) outs(%arg0, %1 : {values}, {places}) {{
  ^bb0(%arg1: {element}, %arg2: {element}, %arg3: i64, %arg4: i64):
    %3 = arith.{compare} {predicate}, %arg1, %arg2 : {element}
    {dialect}.yield %3 : i1
  }} -> {values}, {places}
  return %2#0, %2#1 : {values}, {places}
}}"""


@pytest.mark.parametrize(
    ("dialect", "dim", "predicate", "falling"),
    [
        ("tm_tensor", 1, "ole", False),
        ("tm_tensor", 0, "oge", True),
        ("iree_linalg_ext", 1, "olt", False),
        ("iree_linalg_ext", 0, "ogt", True),
    ],
)
def test_sorted(dialect: str, dim: int, predicate: str, falling: bool) -> None:
    """Equal elements keep their order, whether the comparison is strict or not."""
    x = RNG.integers(-3, 3, (3, 5)).astype(np.float32)
    text = sorting(dialect, "3x5", dim, predicate)
    values, places = judged(text, ["arg0"], [x], "sm_80")
    order = np.argsort(-x if falling else x, axis=dim, kind="stable")
    assert np.array_equal(places, order)
    assert np.array_equal(values, np.take_along_axis(x, order, dim))
    assert str(fragir.parse(str(fragir.parse(text)))) == str(fragir.parse(text))


def test_the_first_of_sorted_integers() -> None:
    """A part of them: topk, as torch-mlir prints it."""
    text = sorting("tm_tensor", "3x9", 1, "sge", "i32")
    text = text.replace("(tensor<3x9xi32>, tensor<3x9xi64>)", "tensor<3x2xi64>").replace(
        "  return %2#0, %2#1 : tensor<3x9xi32>, tensor<3x9xi64>",
        "  %k = tensor.extract_slice %2#1[0, 0] [3, 2] [1, 1] : tensor<3x9xi64> to "
        "tensor<3x2xi64>\n"
        "  return %k : tensor<3x2xi64>",
    )
    x = RNG.integers(-50, 50, (3, 9)).astype(np.int32)
    (places,) = judged(text, ["arg0"], [x], "sm_80")
    assert np.array_equal(places, np.argsort(-x, 1, kind="stable")[:, :2])


def test_not_a_number_is_sorted_somewhere() -> None:
    """No order is promised; nothing is read or written outside."""
    x = RNG.standard_normal((2, 6)).astype(np.float32)
    x[:, ::2] = np.nan
    found, places = x.copy(), np.zeros((2, 6), np.int64)
    kernel = fragir.compile(sorting("tm_tensor", "2x6", 1, "ole"))
    assert kernel(found, places, on="emulator", check=True).findings == []
    assert places.min() >= 0
    assert places.max() < 6


def scanning(inclusive: bool, dim: int, operation: str, ends: bool) -> str:
    x, rest = "tensor<4x5xf32>", f"tensor<{5 if dim == 0 else 4}xf32>"
    results = f"({x}, {rest})" if ends else x
    return f"""func.func @scan(%x: {x}, %first: {rest}) -> {results} {{
  %0 = tensor.empty() : {x}
  %1:2 = tm_tensor.scan dimension({dim}) inclusive({str(inclusive).lower()})
      ins(%x : {x}) outs(%0, %first : {x}, {rest}) {{
  ^bb0(%a: f32, %b: f32):
    %2 = arith.{operation} %a, %b : f32
    tm_tensor.yield %2 : f32
  }} -> {x}, {rest}
  return {"%1#0, %1#1" if ends else "%1#0"} : {f"{x}, {rest}" if ends else x}
}}"""


@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("operation", ["addf", "subf", "mulf"])
def test_sums_up_to_each(dim: int, operation: str) -> None:
    meaning = {"addf": np.add, "subf": np.subtract, "mulf": np.multiply}[operation]
    x = RNG.standard_normal((4, 5)).astype(np.float32)
    first = RNG.standard_normal(5 if dim == 0 else 4).astype(np.float32)
    (found,) = judged(scanning(True, dim, operation, False), ["x", "first"], [x, first], "sm_80")
    assert np.allclose(found, meaning.accumulate(x.astype(np.float64), dim), atol=1e-5)
    (found,) = judged(scanning(False, dim, operation, False), ["x", "first"], [x, first], "sm_80")
    rows = np.insert(np.delete(x, -1, dim), 0, first, dim)
    assert np.allclose(found, meaning.accumulate(rows.astype(np.float64), dim), atol=1e-5)


def test_what_sums_end_with() -> None:
    x, first = RNG.standard_normal((4, 5)).astype(np.float32), np.zeros(4, np.float32)
    arrays = [x, first]
    last, found = judged(scanning(True, 1, "addf", True), ["x", "first"], arrays, "sm_80")
    assert np.allclose(found, np.cumsum(x, 1), atol=1e-5)
    assert np.allclose(last, x.sum(1), atol=1e-5)
    with pytest.raises(fragir.FragirError, match="that is exclusive ends with"):
        fragir.compile(scanning(False, 1, "addf", True))


def scattering(shape: str, rows: str, update: str, held: str, body: str) -> str:
    whole, updates, indices = f"tensor<{shape}xf32>", f"tensor<{update}xf32>", f"tensor<{rows}xi64>"
    return f"""func.func @scatter(%x: {whole}, %i: {indices}, %u: {updates}) -> {whole} {{
  %0 = tm_tensor.scatter {{dimension_map = array<i64: {held}>}} unique_indices(false)
      ins(%u, %i : {updates}, {indices}) outs(%x : {whole}) {{
  ^bb0(%new: f32, %old: f32):
    %1 = {body}
    tm_tensor.yield %1 : f32
  }} -> {whole}
  return %0 : {whole}
}}"""


@pytest.mark.parametrize("update", ["10x1x6", "10x6"])
def test_scattered_sums(update: str) -> None:
    """Into the array that they start from; what is for no row goes nowhere."""
    text = scattering("8x6", "10x1", update, "0", "arith.addf %old, %new : f32")
    x = RNG.standard_normal((8, 6)).astype(np.float32)
    rows = RNG.integers(0, 8, (10, 1))
    rows[3] = 8
    shape = [int(n) for n in update.split("x")]
    updates = RNG.standard_normal(shape).astype(np.float32)
    (found,) = judged(text, ["x", "i", "u"], [x, rows, updates], "sm_80")
    expected = np.concatenate([x, np.zeros((1, 6), np.float32)]).astype(np.float64)
    np.add.at(expected, rows[:, 0], updates.reshape(10, 6))
    assert np.allclose(found, expected[:8], atol=1e-5)


def test_the_last_of_scattered_elements_stays() -> None:
    """Places along two dimensions, the second one first."""
    text = scattering("4x5x3", "9x2", "9x3", "1, 0", "arith.addf %new, %new : f32")
    x = RNG.standard_normal((4, 5, 3)).astype(np.float32)
    places = np.stack([RNG.integers(0, 5, 9), RNG.integers(0, 4, 9)], 1)
    places[8] = places[2]
    updates = RNG.standard_normal((9, 3)).astype(np.float32)
    (found,) = judged(text, ["x", "i", "u"], [x, places, updates], "sm_80")
    for (column, row), update in zip(places, updates, strict=True):
        x[row, column] = 2 * update
    assert np.array_equal(found, x)
    wide = scattering("4x5x3", "9x2", "9x2x1x3", "1, 0", "arith.addf %new, %new : f32")
    with pytest.raises(fragir.FragirError, match="parts that are not whole rows"):
        fragir.compile(wide)


def transform(size: int) -> str:
    """Of rows: the places with their bits reversed, then stage after stage."""
    stages, kind = size.bit_length() - 1, f"tensor<3x{size}xf32>"
    bits = [int(f"{at:0{stages}b}"[::-1], 2) for at in range(size)]
    lines = [
        f"  %r = arith.constant dense<{bits}> : tensor<{size}xi64>",
        f"  %e = tensor.empty() : {kind}",
        f"  %z = arith.constant dense<0.0> : {kind}",
        "  %p0 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (j)>, "
        'affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} '
        f"ins(%r : tensor<{size}xi64>) outs(%e : {kind}) {{",
        "  ^bb0(%in: i64, %out: f32):",
        "    %row = linalg.index 0 : index",
        "    %col = arith.index_cast %in : i64 to index",
        f"    %v = tensor.extract %x[%row, %col] : {kind}",
        "    linalg.yield %v : f32",
        f"  }} -> {kind}",
    ]
    real, imaginary = "%p0", "%z"
    for stage in range(1, stages + 1):
        half = 1 << (stage - 1)
        angles: Array = np.pi * np.arange(half) / half
        held = f"tensor<{half}xf32>"
        for name, part in (("a", np.cos(angles)), ("b", -np.sin(angles))):
            numbers = ", ".join(f"{number:.9e}" for number in part)
            lines.append(f"  %{name}{stage} = arith.constant dense<[{numbers}]> : {held}")
        lines += [
            f"  %c{stage} = arith.constant {stage} : index",
            f"  %s{stage}:2 = iree_linalg_ext.fft "
            f"ins(%c{stage}, %a{stage}, %b{stage} : index, {held}, {held}) "
            f"outs({real}, {imaginary} : {kind}, {kind}) : {kind}, {kind}",
        ]
        real, imaginary = f"%s{stage}#0", f"%s{stage}#1"
    body = "\n".join(lines)
    return f"""func.func @fft(%x: {kind}) -> ({kind}, {kind}) {{
{body}
  return {real}, {imaginary} : {kind}, {kind}
}}"""


@pytest.mark.parametrize("size", [2, 8])
def test_fourier_transforms(size: int) -> None:
    x = RNG.standard_normal((3, size)).astype(np.float32)
    real, imaginary = judged(transform(size), ["x"], [x], "sm_80")
    assert np.allclose(real + 1j * imaginary, np.fft.fft(x.astype(np.float64)), atol=1e-5)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("(%a: f32, %b: f32)", "(%a: f32, %b: f32, %c: f32)", "its body takes"),
        ("dimension(1)", "dimension(2)", "there is no dimension 2"),
        ("inclusive(true)", "backwards(true)", "says no backwards"),
    ],
)
def test_what_is_wrong(old: str, new: str, words: str) -> None:
    text = scanning(True, 1, "addf", False).replace(old, new)
    with pytest.raises(fragir.FragirError, match=words):
        fragir.parse(text)
