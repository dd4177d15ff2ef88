"""linalg on memrefs and tensors, compiled and run on the emulator, against numpy.

Inputs are small integers, so every sum is exact in every type and results are compared exactly.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from xdsl.context import Context
from xdsl.dialects import get_all_dialects
from xdsl.dialects.linalg import Linalg

import fragir
from fragir.compiler import context
from fragir.dialects.elements import TILE_ELEMENTS
from fragir.dialects.linalg import generic_text
from fragir.dialects.linalg.generic_text import hidden_error
from fragir.mlir.diagnostics import LocatedFailure, LocatingParser, message_of
from fragir.passes.convert_linalg_to_frag import ConvertLinalgToFragPass

Array = npt.NDArray[Any]
TARGETS = pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
F16, F32 = "memref<?x?xf16>", "memref<?x?xf32>"
M, N, K = 37, 51, 45  # no multiples of anything


PRODUCT_MAPS = {
    "a": "affine_map<(m, n, k) -> (m, k)>",
    "at": "affine_map<(m, n, k) -> (k, m)>",
    "b": "affine_map<(m, n, k) -> (k, n)>",
    "bt": "affine_map<(m, n, k) -> (n, k)>",
    "c": "affine_map<(m, n, k) -> (m, n)>",
}
WHOLE = "affine_map<(m, n) -> (m, n)>"
COLUMN = "affine_map<(m, n) -> (n)>"
ROW = "affine_map<(m, n) -> (m)>"
ONE_COLUMN = "affine_map<(m, n) -> (m, 0)>"
SMALL = " attrs = {tile = array<i64: 64, 64, 64>}"


def product(
    element: str,
    total: str,
    *,
    out: str = "%c",
    transposed: tuple[bool, bool] = (False, False),
    extend: tuple[str, str] | None = None,
    kind: str = "memref",
    result: str | None = None,
    other: str | None = None,
    attributes: str = SMALL,
) -> str:
    """A linalg.generic that adds the product of %a and %b to `out`, of any size."""
    b = element if other is None else other
    letter = "i" if total == "i32" else "f"
    maps = ", ".join(
        PRODUCT_MAPS[name]
        for name in ("at" if transposed[0] else "a", "bt" if transposed[1] else "b", "c")
    )
    first, second = ("%x1", "%y1") if extend else ("%x", "%y")
    casts = (
        f"%x1 = arith.{extend[0]} %x : {element} to {total}\n"
        f"%y1 = arith.{extend[1]} %y : {b} to {total}\n"
        if extend
        else ""
    )
    return (
        (f"{result} = " if result else "") + f"linalg.generic {{indexing_maps = [{maps}], "
        'iterator_types = ["parallel", "parallel", "reduction"]} '
        f"ins(%a, %b : {kind}<?x?x{element}>, {kind}<?x?x{b}>) "
        f"outs({out} : {kind}<?x?x{total}>){attributes} {{\n"
        f"^bb0(%x: {element}, %y: {b}, %s: {total}):\n{casts}"
        f"%p = arith.mul{letter} {first}, {second} : {total}\n"
        f"%t = arith.add{letter} %s, %p : {total}\n"
        f"linalg.yield %t : {total}\n}}" + (f" -> {kind}<?x?x{total}>\n" if result else "\n")
    )


def elementwise(
    inputs: list[tuple[str, str, str]],
    output: tuple[str, str],
    body: str,
    result: str | None = None,
) -> str:
    """A linalg.generic over a matrix; inputs are (value, type, map), the body names %0, %1, ...

    The elements are %e0, %e1, ... and, of the output, %old.
    """
    maps = ", ".join([*(map_ for _, _, map_ in inputs), WHOLE])
    types = [type_ for _, type_, _ in inputs]
    arguments = [f"%e{i}: {element(type_)}" for i, type_ in enumerate(types)]
    names = ", ".join(value for value, _, _ in inputs)
    given = f"ins({names} : {', '.join(types)}) " if inputs else ""
    return (
        (f"{result} = " if result else "")
        + f'linalg.generic {{indexing_maps = [{maps}], iterator_types = ["parallel", "parallel"]}} '
        f"{given}outs({output[0]} : {output[1]}) {{\n"
        f"^bb0({', '.join([*arguments, f'%old: {element(output[1])}'])}):\n{body}\n}}"
        + (f" -> {output[1]}\n" if result else "\n")
    )


def element(type_: str) -> str:
    """The element type of a memref, tensor or scalar type."""
    return type_.split("<")[-1].rstrip(">").split("x")[-1] if "<" in type_ else type_


def function(arguments: str, body: str, returns: str | None = None, type_: str = "") -> str:
    """@f with this body."""
    end = f"func.return {returns} : {type_}" if returns else "func.return"
    arrow = f" -> {type_}" if returns else ""
    return f"func.func @f({arguments}){arrow} {{\n{body}{end}\n}}\n"


def integers(shape: tuple[int, ...], type_: npt.DTypeLike = np.float16, low: int = -3) -> Array:
    """Small whole numbers, the same for the same shape."""
    return np.random.default_rng(sum(shape)).integers(low, 4, shape).astype(type_)


def run(program: str, target: str, *arguments: Array | np.generic) -> None:
    fragir.compile(program, target=target)(*arguments, on="emulator")


@TARGETS
@pytest.mark.parametrize("transposed", [(False, False), (False, True), (True, False), (True, True)])
def test_transposes(target: str, transposed: tuple[bool, bool]) -> None:
    program = function(
        f"%a: {F16}, %b: {F16}, %c: {F32}",
        product("f16", "f32", transposed=transposed, extend=("extf", "extf")),
    )
    a, b, c = integers((M, K)), integers((K, N)), integers((M, N), np.float32)
    wanted = c + a.astype(np.float32) @ b.astype(np.float32)
    stored = [
        np.ascontiguousarray(x.T) if t else x for x, t in zip((a, b), transposed, strict=True)
    ]
    run(program, target, *stored, c)
    np.testing.assert_array_equal(c, wanted)


@TARGETS
def test_matmul_f64(target: str) -> None:
    type_ = "memref<?x?xf64>"
    program = function(
        f"%a: {type_}, %b: {type_}, %c: {type_}",
        f"linalg.matmul ins(%a, %b : {type_}, {type_}) outs(%c : {type_})\n",
    )
    a, b, c = (integers(shape, np.float64) for shape in ((M, K), (K, N), (M, N)))
    wanted = a @ b + c
    run(program, target, a, b, c)
    np.testing.assert_array_equal(c, wanted)


@TARGETS
def test_static_sizes_from_zero(target: str) -> None:
    shapes = {"%a": "64x64xf16", "%b": "64x64xf16", "%c": "64x64xf16"}
    types = ", ".join(f"{name}: memref<{shape}>" for name, shape in shapes.items())
    m = "memref<64x64xf16>"
    program = function(
        types,
        "%zero = arith.constant 0.0 : f16\n"
        f"linalg.fill ins(%zero : f16) outs(%c : {m})\n"
        f"linalg.matmul ins(%a, %b : {m}, {m}) outs(%c : {m})\n",
    )
    a, b, c = (
        integers((64, 64)),
        integers((64, 65))[:, :64].copy(),
        np.full((64, 64), 7, np.float16),
    )
    run(program, target, a, b, c)
    np.testing.assert_array_equal(c, a @ b)


@TARGETS
@pytest.mark.parametrize(
    ("extend", "types"),
    [(("extsi", "extsi"), (np.int8, np.int8)), (("extui", "extsi"), (np.uint8, np.int8))],
)
def test_bytes(target: str, extend: tuple[str, str], types: tuple[type, type]) -> None:
    program = function(
        "%a: memref<?x?xi8>, %b: memref<?x?xi8>, %c: memref<?x?xi32>",
        product("i8", "i32", transposed=(False, True), extend=extend),
    )
    a, b = (
        np.random.default_rng(0).integers(np.iinfo(t).min, np.iinfo(t).max, s, t, endpoint=True)
        for t, s in zip(types, ((M, K), (N, K)), strict=True)
    )
    c = integers((M, N), np.int32)
    wanted = c + a.astype(np.int32) @ b.astype(np.int32).T
    run(program, target, a, b, c)
    np.testing.assert_array_equal(c, wanted)


@TARGETS
def test_bias_and_activation_into_f16(target: str) -> None:
    """The f32 buffer of the sum disappears; bias by column, scale by row, relu, rounding."""
    program = function(
        f"%a: {F16}, %b: {F16}, %u: memref<?xf32>, %v: memref<?x1xf32>, %d: {F16}, %alpha: f32",
        "%zero = arith.constant 0.0 : f32\n%i0 = arith.constant 0 : index\n"
        "%i1 = arith.constant 1 : index\n"
        f"%m = memref.dim %d, %i0 : {F16}\n%n = memref.dim %d, %i1 : {F16}\n"
        f"%c = memref.alloc(%m, %n) : {F32}\nlinalg.fill ins(%zero : f32) outs(%c : {F32})\n"
        + product("f16", "f32", extend=("extf", "extf"))
        + elementwise(
            [
                ("%c", F32, WHOLE),
                ("%u", "memref<?xf32>", COLUMN),
                ("%v", "memref<?x1xf32>", ONE_COLUMN),
                ("%alpha", "f32", "affine_map<(m, n) -> ()>"),
            ],
            ("%d", F16),
            "%0 = arith.addf %e0, %e1 : f32\n%1 = arith.mulf %0, %e2 : f32\n"
            "%2 = arith.mulf %1, %e3 : f32\n%3 = arith.maximumf %2, %zero : f32\n"
            "%4 = arith.truncf %3 : f32 to f16\nlinalg.yield %4 : f16",
        ),
    )
    a, b, d = integers((M, K)), integers((K, N)), np.zeros((M, N), np.float16)
    u, v = integers((N,), np.float32), integers((M, 1), np.float32)
    run(program, target, a, b, u, v, d, np.float32(0.5))
    total = a.astype(np.float32) @ b.astype(np.float32)
    np.testing.assert_array_equal(d, np.maximum((total + u) * v * np.float32(0.5), 0).astype("f2"))


@TARGETS
def test_tensors(target: str) -> None:
    """relu(A B + beta C) in place of C, with the sum in a tensor of its own."""
    t16, t32 = "tensor<?x?xf16>", "tensor<?x?xf32>"
    program = function(
        f"%a: {t16}, %b: {t16}, %c: {t32}, %beta: f32",
        "%zero = arith.constant 0.0 : f32\n%i0 = arith.constant 0 : index\n"
        "%i1 = arith.constant 1 : index\n"
        f"%m = tensor.dim %a, %i0 : {t16}\n%n = tensor.dim %b, %i1 : {t16}\n"
        f"%e = tensor.empty(%m, %n) : {t32}\n"
        f"%f = linalg.fill ins(%zero : f32) outs(%e : {t32}) -> {t32}\n"
        + product("f16", "f32", out="%f", extend=("extf", "extf"), kind="tensor", result="%sum")
        + elementwise(
            [("%sum", t32, WHOLE)],
            ("%c", t32),
            "%0 = arith.mulf %old, %beta : f32\n%1 = arith.addf %e0, %0 : f32\n"
            "%2 = arith.maximumf %1, %zero : f32\nlinalg.yield %2 : f32",
            "%d",
        ),
        "%d",
        t32,
    )
    a, b, c = integers((M, K)), integers((K, N)), integers((M, N), np.float32)
    wanted = np.maximum(a.astype(np.float32) @ b.astype(np.float32) + 2 * c, 0)
    run(program, target, a, b, c, np.float32(2))
    np.testing.assert_array_equal(c, wanted)


def test_tensor_result_is_the_last_argument() -> None:
    t16, t32 = "tensor<?x?xbf16>", "tensor<?x?xf32>"
    program = function(
        f"%a: {t16}, %b: {t16}",
        "%zero = arith.constant 0.0 : f32\n%i0 = arith.constant 0 : index\n"
        f"%m = tensor.dim %a, %i0 : {t16}\n%n = tensor.dim %b, %i0 : {t16}\n"
        f"%e = tensor.empty(%m, %n) : {t32}\n"
        f"%f = linalg.fill ins(%zero : f32) outs(%e : {t32}) -> {t32}\n"
        + product(
            "bf16",
            "f32",
            out="%f",
            extend=("extf", "extf"),
            kind="tensor",
            result="%sum",
            transposed=(False, True),
        ),
        "%sum",
        t32,
    )
    kernel = fragir.compile(program)
    assert [argument.name for argument in kernel.signature] == ["a", "b", "sum"]
    a, b = integers((M, K), np.float32), integers((N, K), np.float32)
    c = np.full((M, N), np.nan, np.float32)
    kernel(*((x.view(np.uint32) >> 16).astype(np.uint16) for x in (a, b)), c, on="emulator")
    np.testing.assert_array_equal(c, a @ b.T)


def test_f32_runs_without_tensor_cores() -> None:
    """As it is written: f32 times f32 in f32, which is not tf32's product."""
    program = function(
        f"%a: {F32}, %b: {F32}, %c: {F32}",
        f"linalg.matmul ins(%a, %b : {F32}, {F32}) outs(%c : {F32})\n",
    )
    assert "mma" not in fragir.compile(program, target="sm_80").ptx
    a, b, c = integers((M, K), np.float32), integers((K, N), np.float32), np.ones((M, N), "f4")
    run(program, "sm_80", a, b, c)
    np.testing.assert_array_equal(c, a @ b + 1)


@pytest.mark.parametrize("element", ["f16", "bf16", "tf32", "f64", "i8", "si8", "ui8", "f8E5M2"])
def test_advice_compiles(element: str) -> None:
    """What messages say to write is accepted, for every type that tensor cores multiply."""
    (type_,) = (t for t in TILE_ELEMENTS if str(t) == element)
    total = generic_text.usual_sum(type_, type_)
    assert total is not None
    m = f"memref<?x?x{element}>"
    body = generic_text.generic(type_, type_, total) + "\n"
    program = function(f"%a: {m}, %b: {m}, %c: memref<?x?x{total}>", body)
    assert "mma" in fragir.compile(program, target="sm_90a").ptx


def test_types_that_linalg_matmul_cannot_say() -> None:
    """xDSL gives it an ill-typed body; the words for that show the linalg.generic to write."""
    text = function(
        f"%a: {F16}, %b: {F16}, %c: {F32}",
        f"linalg.matmul ins(%a, %b : {F16}, {F16}) outs(%c : {F32})\n",
    )
    stock = Context()
    stock.register_dialect("linalg", lambda: Linalg)
    for name in ("arith", "builtin", "func", "memref"):
        stock.register_dialect(name, get_all_dialects()[name])
    module = LocatingParser(stock, text).parse_module()
    hidden = next(op for op in module.walk() if op.name == "arith.addf")
    found = hidden_error(hidden)
    assert found is not None
    owner, message = found
    assert owner.name == "linalg.matmul"
    assert message.startswith("linalg.matmul of f16 and f16 into f32 cannot say how the elements")
    with pytest.raises(LocatedFailure) as error:
        ConvertLinalgToFragPass().apply(context(), module)
    assert message_of(error.value) == message
    advice = "linalg.generic" + message.split("linalg.generic", 1)[1]
    program = function(f"%a: {F16}, %b: {F16}, %c: {F32}", advice + "\n")
    a, b, c = integers((M, K)), integers((K, N)), np.ones((M, N), np.float32)
    run(program, "sm_80", a, b, c)
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32) + 1)
