"""What an error tells one to write is written, and works."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fragir
from fragir.compiler import Kernel
from fragir.errors import FragirError


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


PRODUCTS = [
    ("matmul_transpose_a", "64x32xf16", "64x48xf16", "32x48xf32"),
    ("matmul_transpose_b", "32x64xf16", "48x64xf16", "32x48xf32"),
    ("matmul_transpose_b", "?x?xi8", "?x?xi8", "?x?xi32"),
    ("batch_matmul", "4x32x64xf16", "4x64x48xf16", "4x32x48xf32"),
    ("batch_matmul_transpose_b", "?x32x64xf16", "?x48x64xf16", "?x32x48xf32"),
]


@pytest.mark.parametrize(("name", "a", "b", "c"), PRODUCTS)
def test_products_by_their_names(name: str, a: str, b: str, c: str) -> None:
    types = [f"memref<{shape}>" for shape in (a, b, c)]
    named = f"linalg.{name} ins(%a, %b : {types[0]}, {types[1]}) outs(%c : {types[2]})"
    kernel = fragir.compile(function(named, *types), target="sm_80")
    first, second, total = arrays(name, "i8" in a)
    expected = total + product(name, first, second)
    kernel(first, second, total)
    assert np.array_equal(total, expected)


MAPS = {"m, k": False, "k, m": True}, {"k, n": False, "n, k": True}


@pytest.mark.parametrize("first", MAPS[0])
@pytest.mark.parametrize("second", MAPS[1])
@pytest.mark.parametrize("before", [True, False])
def test_transposed_products_of_unlike_types(first: str, second: str, before: bool) -> None:
    """The maps come before the operands, or in a dictionary."""
    maps = [f"affine_map<(m, n, k) -> ({dims})>" for dims in (first, second, "m, n")]
    listed = f"indexing_maps = [{', '.join(maps)}]"
    types = ["memref<?x?xf16>", "memref<?x?xf16>", "memref<?x?xf32>"]
    operands = f"ins(%a, %b : {types[0]}, {types[1]}) outs(%c : {types[2]})"
    text = f"{listed} {operands}" if before else f"{{{listed}}} {operands}"
    kernel = fragir.compile(function(f"linalg.matmul {text}", *types), target="sm_80")
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
    if name.endswith("_b"):
        shapes[1] = (48, 64)
    if name.startswith("batch"):
        shapes = [(4, *shape) for shape in shapes]
    types = ("int8", "int8", "int32") if bytes_ else ("float16", "float16", "float32")
    a, b, c = (rng.integers(-4, 5, s).astype(t) for s, t in zip(shapes, types, strict=True))
    return a, b, c


def product(name: str, a: Any, b: Any) -> Any:
    a, b = a.astype(np.int64), b.astype(np.int64)
    turned = [np.swapaxes(x, -1, -2) for x in (a, b)]
    return (turned[0] if "_a" in name else a) @ (turned[1] if name.endswith("_b") else b)


def test_a_product_that_no_tensor_core_has() -> None:
    """Lanes multiply instead; i16 wraps."""
    types = ["memref<?x?xi16>"] * 3
    named = f"linalg.matmul_transpose_b ins(%a, %b : {types[0]}, {types[1]}) outs(%c : {types[2]})"
    kernel = fragir.compile(function(named, *types), target="sm_80")
    rng = np.random.default_rng(0)
    a, b, c = (
        rng.integers(-(2**15), 2**15, s).astype(np.int16) for s in ((9, 31), (5, 31), (9, 5))
    )
    wanted = (c + a.astype(np.int64) @ b.astype(np.int64).T).astype(np.int16)
    kernel(a, b, c, on="emulator")
    assert np.array_equal(c, wanted)


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
    ("operation", "expected"),
    [
        (ONE.format("abs"), np.abs),
        (ONE.format("tanh"), np.tanh),
        (ONE.format("negf"), np.negative),
        (ONE.format("floor"), np.floor),
        (ONE.format("square"), np.square),
        (TWO.format("div"), np.divide),
        (TWO.format("max"), np.maximum),
    ],
)
def test_elementwise_operations_by_their_names(
    operation: str, expected: Callable[..., Any]
) -> None:
    """They are the epilogue of the product before them."""
    kernel = fragir.compile(after_a_product(operation), target="sm_80")
    assert not kernel.is_program
    rng = np.random.default_rng(0)
    a, b = (rng.integers(1, 3, (64, 64)).astype(np.float16) for _ in range(2))
    a -= 1
    c, v = np.zeros((64, 64), np.float16), np.zeros(64, np.float16)
    kernel(a, b, c, v)
    total = a.astype(np.float64) @ b.astype(np.float64)
    wanted = expected(*((total, b.astype(np.float64)) if "%s, %b" in operation else (total,)))
    np.testing.assert_allclose(c.astype(np.float64), wanted, rtol=2e-3)


def test_what_no_dialect_has() -> None:
    error = told(after_a_product(ONE.format("winograd_filter_transform")))
    assert "there is no operation linalg.winograd_filter_transform here" in error.sentence
    assert "write it as a linalg.generic" in error.sentence


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


@pytest.mark.parametrize("by_tanh", [False, True])
def test_erf(by_tanh: bool) -> None:
    """It is there; by tanh it takes less, within 0.001."""
    kernel = fragir.compile(
        EPILOGUE.format(
            """
    %one = arith.constant 1.128379 : f32
    %three = arith.constant 0.100911 : f32
    %square = arith.mulf %x, %x : f32
    %more = arith.mulf %three, %square : f32
    %factor = arith.addf %one, %more : f32
    %y = arith.mulf %x, %factor : f32
    %r = math.tanh %y : f32"""
            if by_tanh
            else "%r = math.erf %x : f32"
        ),
        target="sm_80",
    )
    x = np.linspace(-4, 4, 256).reshape(16, 16).astype(np.float16)
    wanted = np.vectorize(math.erf)(x.astype(np.float64))
    assert np.abs(values(kernel, x) - wanted).max() < (0.001 if by_tanh else 2e-7)


def values(kernel: Kernel, x: Any) -> Any:
    result = np.zeros((16, 16), np.float32)
    kernel(np.eye(16, dtype=np.float16), x, result)
    return result


TRUE: dict[str, Callable[..., Any]] = {
    "math.tan": np.tan, "math.sinh": np.sinh, "math.cosh": np.cosh, "math.asinh": np.arcsinh,
    "math.acosh": np.arccosh, "math.atanh": np.arctanh, "math.expm1": np.expm1,
    "math.log1p": np.log1p, "math.log10": np.log10, "math.powf": np.power, "math.cbrt": np.cbrt,
    "math.round": np.rint,  # none of them is a tie
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(TRUE))
def test_functions_that_were_formulas(name: str) -> None:
    """Each is what its name says, with the second operand 1.7 where it has one."""
    second = ", %y" if name == "math.powf" else ""
    operation = f"%y = arith.constant 1.7 : f32\n%r = {name} %x{second} : f32"
    kernel = fragir.compile(EPILOGUE.format(operation), target="sm_80")
    low, high = (1.01, 3) if name == "math.acosh" else (0.01, 0.45)
    x = np.linspace(low, high, 256).reshape(16, 16).astype(np.float16)
    arguments = (x.astype(np.float64), np.float64(1.7))[: 1 + (name == "math.powf")]
    assert np.allclose(values(kernel, x), TRUE[name](*arguments), rtol=1e-5, atol=1e-6)


def test_what_has_no_instruction_lists_what_there_is() -> None:
    from fragir.passes.writer.composed import hint

    assert "absf" in hint("math.fly")
    assert "erf" in hint("math.fly")
    assert "ceildivsi" in hint("arith.fly")
    assert "convert-frag-to-ptx" in hint("kit.fly")
