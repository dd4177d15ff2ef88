"""What an error tells one to write is written, and works."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import fragir
from fragir.compiler import Kernel
from fragir.errors import FragirError
from fragir.passes.writer.missing import INSTEAD


def function(operation: str, a: str, b: str, c: str) -> str:
    return f"""#id = affine_map<(i, j) -> (i, j)>
func.func @f(%a: {a}, %b: {b}, %c: {c}) {{
  {operation}
  func.return
}}"""


def told(program: str) -> FragirError:
    with pytest.raises(FragirError) as caught:
        fragir.compile(program, target="sm_80")
    return caught.value


def written(error: FragirError) -> str:
    """The linalg.generic in a message."""
    match = re.search(r"linalg\.generic \{.*\}", error.sentence)
    assert match is not None
    return match[0]


PRODUCTS = [
    ("matmul_transpose_a", "64x32xf16", "64x48xf16", "32x48xf32"),
    ("matmul_transpose_b", "32x64xf16", "48x64xf16", "32x48xf32"),
    ("matmul_transpose_b", "?x?xi8", "?x?xi8", "?x?xi32"),
    ("batch_matmul", "4x32x64xf16", "4x64x48xf16", "4x32x48xf32"),
    ("batch_matmul_transpose_b", "?x32x64xf16", "?x48x64xf16", "?x32x48xf32"),
]


@pytest.mark.parametrize(("name", "a", "b", "c"), PRODUCTS)
def test_products_that_are_not_there(name: str, a: str, b: str, c: str) -> None:
    types = [f"memref<{shape}>" for shape in (a, b, c)]
    named = f"linalg.{name} ins(%a, %b : {types[0]}, {types[1]}) outs(%c : {types[2]})"
    error = told(function(named, *types))
    assert f"there is no operation linalg.{name} here" in error.sentence
    assert (error.line, error.col) == (3, 3)
    if name.startswith("batch"):
        assert "launch it once for each of the batch" in error.sentence
        types = [re.sub(r"<[0-9?]+x", "<", type_) for type_ in types]
    kernel = fragir.compile(function(written(error), *types), target="sm_80")
    first, second, total = arrays(name, "i8" in a)
    expected = total + product(name, first, second)
    kernel(first, second, total)
    assert np.array_equal(total, expected)


MAPS = {"m, k": False, "k, m": True}, {"k, n": False, "n, k": True}


@pytest.mark.parametrize("first", MAPS[0])
@pytest.mark.parametrize("second", MAPS[1])
@pytest.mark.parametrize("before", [True, False])
def test_transposed_products_of_unlike_types(first: str, second: str, before: bool) -> None:
    """The maps come before the operands, which xDSL does not read, or in a dictionary."""
    maps = [f"affine_map<(m, n, k) -> ({dims})>" for dims in (first, second, "m, n")]
    listed = f"indexing_maps = [{', '.join(maps)}]"
    types = ["memref<?x?xf16>", "memref<?x?xf16>", "memref<?x?xf32>"]
    operands = f"ins(%a, %b : {types[0]}, {types[1]}) outs(%c : {types[2]})"
    text = f"{listed} {operands}" if before else f"{{{listed}}} {operands}"
    error = told(function(f"linalg.matmul {text}", *types))
    kernel = fragir.compile(function(written(error), *types), target="sm_80")
    name = ("_a" if MAPS[0][first] else "") + ("_b" if MAPS[1][second] else "")
    a, b, c = arrays(name, False)
    expected = c + product(name, a, b)
    kernel(a, b, c)
    assert np.array_equal(c, expected)


def arrays(name: str, bytes_: bool) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(0)
    shapes = [(32, 64), (64, 48), (32, 48)]
    if "_a" in name:
        shapes[0] = (64, 32)
    if "_b" in name:
        shapes[1] = (48, 64)
    types = ("int8", "int8", "int32") if bytes_ else ("float16", "float16", "float32")
    a, b, c = (rng.integers(-4, 5, s).astype(t) for s, t in zip(shapes, types, strict=True))
    return a, b, c


def product(name: str, a: Any, b: Any) -> Any:
    a, b = a.astype(np.int64), b.astype(np.int64)
    return (a.T if "_a" in name else a) @ (b.T if "_b" in name else b)


@pytest.mark.parametrize(("element", "words"), [("f32", "declare the inputs so"), ("i16", "store")])
def test_products_that_no_tensor_core_has(element: str, words: str) -> None:
    types = [f"memref<?x?x{element}>"] * 3
    error = told(
        function(
            f"linalg.matmul_transpose_b ins(%a, %b : {types[0]}, {types[1]}) outs(%c : {types[2]})",
            *types,
        )
    )
    assert words in error.sentence


def after_a_product(operation: str) -> str:
    matrix = "memref<64x64xf16>"
    return f"""
func.func @f(%a: {matrix}, %b: {matrix}, %c: {matrix}, %v: memref<64xf16>) {{
  %zero = arith.constant 0.0 : f16
  %s = memref.alloc() : {matrix}
  linalg.fill ins(%zero : f16) outs(%s : {matrix})
  linalg.matmul ins(%a, %b : {matrix}, {matrix}) outs(%s : {matrix})
  {operation}
  func.return
}}"""


ONE = "linalg.{} ins(%s : memref<64x64xf16>) outs(%c : memref<64x64xf16>)"
TWO = "linalg.{} ins(%s, %b : memref<64x64xf16>, memref<64x64xf16>) outs(%c : memref<64x64xf16>)"


@pytest.mark.parametrize(
    "operation",
    [ONE.format(name) for name in ("abs", "tanh", "negf", "rsqrt", "floor")] + [TWO.format("div")],
)
def test_elementwise_operations_that_are_not_there(operation: str) -> None:
    error = told(after_a_product(operation))
    fragir.compile(after_a_product(written(error)), target="sm_80")


@pytest.mark.parametrize(
    ("operation", "words"),
    [
        (
            "linalg.broadcast ins(%v : memref<64xf16>) outs(%c : memref<64x64xf16>) "
            "dimensions = [0]",
            "leaves out a loop",
        ),
        (
            "linalg.reduce ins(%s : memref<64x64xf16>) outs(%v : memref<64xf16>) dimensions = [1] "
            "(%x : f16, %y : f16) { %t = arith.addf %x, %y : f16 linalg.yield %t : f16 }",
            "multiply by a column or a row of ones",
        ),
        (ONE.format("softmax"), "sums nothing along the rows"),
        (TWO.format("matvec"), "a matrix of one row or column"),
        (TWO.format("conv_1d"), "im2col"),
    ],
)
def test_others(operation: str, words: str) -> None:
    assert words in told(after_a_product(operation)).sentence


# --- scalars --------------------------------------------------------------------------------------


EPILOGUE = """
func.func @f(%a: memref<16x16xf16>, %b: memref<16x16xf16>, %c: memref<16x16xf32>) {{
  frag.matmul %a, %b into %c
    : memref<16x16xf16>, memref<16x16xf16> into memref<16x16xf32> epilogue {{
  ^bb0(%x: f32, %old: f32):
    {}
    frag.yield %r : f32
  }}
  func.return
}}"""


def test_erf() -> None:
    error = told(EPILOGUE.format("%r = math.erf %x : f32"))
    assert error.line == 6
    assert "math.erf: there is no instruction for it" in error.sentence
    hint = error.hint or error.sentence
    first, second = re.findall(r"([0-9.]+) x", hint)
    kernel = fragir.compile(
        EPILOGUE.format(f"""
    %one = arith.constant {first} : f32
    %three = arith.constant {second} : f32
    %square = arith.mulf %x, %x : f32
    %more = arith.mulf %three, %square : f32
    %factor = arith.addf %one, %more : f32
    %y = arith.mulf %x, %factor : f32
    %r = math.tanh %y : f32"""),
        target="sm_80",
    )
    x = np.linspace(-4, 4, 256).reshape(16, 16).astype(np.float16)
    assert np.abs(values(kernel, x) - np.vectorize(math.erf)(x)).max() < 0.001


def values(kernel: Kernel, x: Any) -> Any:
    result = np.zeros((16, 16), np.float32)
    kernel(np.eye(16, dtype=np.float16), x, result)
    return result


TRUE: dict[str, Callable[..., Any]] = {
    "math.tan": np.tan, "math.sinh": np.sinh, "math.cosh": np.cosh, "math.asinh": np.arcsinh,
    "math.acosh": np.arccosh, "math.atanh": np.arctanh, "math.expm1": np.expm1,
    "math.log1p": np.log1p, "math.log10": np.log10, "math.powf": np.power, "math.cbrt": np.cbrt,
    "math.round": np.floor, "arith.remf": np.fmod,
}  # fmt: skip


@pytest.mark.parametrize("name", TRUE)
def test_formulas(name: str) -> None:
    """They say what they stand for, where they say that they do."""
    formula = INSTEAD[name].split(" for ")[0].split(", ")[0]
    formula = re.sub(r"(\d|\by) (math|x)", r"\1 * \2", formula).replace("^", "**")
    names = ("exp", "exp2", "log", "log2", "sqrt", "sin", "cos", "floor", "trunc")
    scope = SimpleNamespace(**{each: getattr(np, each) for each in names})
    y = np.float64(1.7)
    x = np.linspace(1.01, 3, 50) if name == "math.acosh" else np.linspace(0.01, 0.45, 50)
    arguments = (x, y) if name in ("math.powf", "arith.remf") else (x,)
    assert np.allclose(eval(formula, {"math": scope, "x": x, "y": y}), TRUE[name](*arguments))


def test_what_has_no_formula_lists_what_there_is() -> None:
    error = told(EPILOGUE.format("%r = math.atan %x : f32"))
    assert "absf" in str(error)
    assert "tanh" in str(error)
