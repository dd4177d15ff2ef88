"""Forms that torch-mlir and IREE print beside generics: casts and choices of whole tensors, shapes
that are computed, functions of `util`, conditions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import fragir
from tests.linalg.judging import judged

Array = npt.NDArray[Any]
RNG = np.random.default_rng(11)


def whole(body: str, given: str, result: str) -> str:
    taken = f"%x: tensor<4x6x{given}>, %z: tensor<4x6x{given}>"
    return f"""func.func @f({taken}) -> tensor<4x6x{result}> {{
  {body}
  return %y : tensor<4x6x{result}>
}}"""


F, N, B = "tensor<4x6xf32>", "tensor<4x6xi32>", "tensor<4x6xi1>"
Case = tuple[str, str, str, Callable[[Array, Array], Array]]
#: what computes %y, the elements of %x and %z, those of %y, the same in numpy
WHOLE: dict[str, Case] = {
    "comparison of floats": (
        f"%y = arith.cmpf ogt, %x, %z : {F}",
        "f32",
        "i1",
        lambda x, z: x > z,
    ),
    "comparison of integers": (
        f"%y = arith.cmpi sle, %x, %z : {N}",
        "i32",
        "i1",
        lambda x, z: x <= z,
    ),
    "comparison in the generic form": (
        f'%y = "arith.cmpi"(%x, %z) <{{predicate = 0 : i64}}> : ({N}, {N}) -> {B}',
        "i32",
        "i1",
        lambda x, z: x == z,
    ),
    "choice by a tensor": (
        f"%c = arith.cmpf olt, %x, %z fastmath<nnan> : {F}\n"
        f"  %y = arith.select %c, %x, %z : {B}, {F}",
        "f32",
        "f32",
        np.minimum,
    ),
    "choice by a condition": (
        f"%c = arith.constant true\n  %y = arith.select %c, %z, %x : {F}",
        "f32",
        "f32",
        lambda x, z: z,
    ),
    "wider integers": (
        f"%y = arith.extsi %x : tensor<4x6xi8> to {N}",
        "i8",
        "i32",
        lambda x, z: x.astype(np.int32),
    ),
    "wider conditions": (
        f"%y = arith.extui %x : {B} to {N}",
        "i1",
        "i32",
        lambda x, z: x.astype(np.int32),
    ),
    "narrower integers": (
        f"%y = arith.trunci %x : tensor<4x6xi64> to {N}",
        "i64",
        "i32",
        lambda x, z: x.astype(np.int32),
    ),
    "integers as floats": (
        f"%y = arith.sitofp %x : {N} to {F}",
        "i32",
        "f32",
        lambda x, z: x.astype(np.float32),
    ),
    "floats as integers": (
        f"%y = arith.fptosi %x : {F} to tensor<4x6xi64>",
        "f32",
        "i64",
        lambda x, z: np.trunc(x).astype(np.int64),
    ),
    "indices": (
        f"%i = arith.index_cast %x : {N} to tensor<4x6xindex>\n"
        "  %y = arith.index_cast %i : tensor<4x6xindex> to tensor<4x6xi64>",
        "i32",
        "i64",
        lambda x, z: x.astype(np.int64),
    ),
    "logic of conditions": (
        f"%y = arith.xori %x, %z : {B} // of tensor<4x6xi1>",
        "i1",
        "i1",
        lambda x, z: x ^ z,
    ),
}
NUMPY = {"f32": np.float32, "i1": np.bool_, "i8": np.int8, "i32": np.int32, "i64": np.int64}


def arrays(element: str) -> tuple[Array, Array]:
    if element == "f32":
        x, z = (4 * RNG.standard_normal((2, 4, 6))).astype(np.float32)
    else:
        x, z = RNG.integers(0, 2 if element == "i1" else 5, (2, 4, 6)).astype(NUMPY[element])
    return x, z


@pytest.mark.parametrize("name", WHOLE)
def test_whole_tensors(name: str) -> None:
    body, given, result, meaning = WHOLE[name]
    x, z = arrays(given)
    text = whole(body, given, result)
    held = [one.view(np.uint8) if one.dtype == np.bool_ else one for one in (x, z)]
    (found,) = judged(text, ["x", "z"], held, "sm_80")
    assert np.array_equal(found.astype(NUMPY[result]), meaning(x, z))
    printed = str(fragir.parse(text))
    assert str(fragir.parse(printed)) == printed


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (f"%y = arith.cmpf above, %x, %z : {F}", "above is no predicate of arith.cmpf"),
        (
            f'%i = "arith.sitofp"(%x) : ({F}) -> tensor<4xf32>\n  %y = arith.negf %x : {F}',
            "of one shape",
        ),
        (f"%i = arith.extsi %x : {F} to {N}\n  %y = arith.negf %x : {F}", "integer_type"),
        (f"%y = arith.select %x, %z : {F}", "arith.select takes 3 operands"),
    ],
)
def test_what_is_wrong(body: str, words: str) -> None:
    with pytest.raises(fragir.FragirError, match=words) as raised:
        fragir.parse(whole(body, "f32", "f32"))
    assert raised.value.line == 2


@pytest.mark.parametrize("kind", [np.bool_, np.uint8, np.int8])
def test_results_of_conditions(kind: Any) -> None:
    """Arrays of conditions are taken as PyTorch and numpy have them."""
    body, *_ = WHOLE["comparison of floats"]
    x, z = arrays("f32")
    found = np.zeros((4, 6), kind)
    fragir.compile(whole(body, "f32", "i1"))(x, z, found, on="emulator")
    assert np.array_equal(found.astype(bool), x > z)


def test_an_index_for_all_elements() -> None:
    text = """func.func @f(%n: tensor<5xindex>) -> tensor<5xindex> {
  %c = arith.constant 3 : index
  %e = tensor.empty() : tensor<5xindex>
  %f = linalg.fill ins(%c : index) outs(%e : tensor<5xindex>) -> tensor<5xindex>
  %r = arith.addi %f, %n : tensor<5xindex>
  return %r : tensor<5xindex>
}"""
    n = RNG.integers(0, 99, 5).astype(np.int32)
    (found,) = judged(text, ["n"], [n], "sm_80")
    assert np.array_equal(found, n + 3)
    generic = text.replace(
        "linalg.fill ins(%c : index) outs(%e : tensor<5xindex>) -> tensor<5xindex>",
        '"linalg.fill"(%c, %e) <{operandSegmentSizes = array<i32: 1, 1>}> ({\n'
        "^bb0(%a: index, %b: index):\n linalg.yield %a : index\n}) : "
        "(index, tensor<5xindex>) -> tensor<5xindex>",
    )
    assert fragir.compile(generic).ptx == fragir.compile(text).ptx


# -- shapes ----------------------------------------------------------------------------------------

SHAPES = {
    "2x12": ("dense<[2, 12]> : tensor<2xi64>", "4x6", "2x12"),
    "24": ("dense<24> : tensor<1xi32>", "4x6", "24"),
    "from one dimension": ("dense<[3, 4, 2]> : tensor<3xindex>", "24", "3x4x2"),
    "one element": ("dense<> : tensor<0xi64>", "1x1", ""),
    "of one element": ("dense<1> : tensor<2xi64>", "", "1x1"),
    "open": ("dense<[2, 12]> : tensor<2xi64>", "4x6", "?x12"),
}


@pytest.mark.parametrize("name", SHAPES)
def test_shapes_by_tensors(name: str) -> None:
    shape, before, after = SHAPES[name]
    source, result = (f"tensor<{one}{'x' if one else ''}f32>" for one in (before, after))
    text = f"""func.func @f(%x: {source}) -> {result} {{
  %s = arith.constant {shape}
  %r = tensor.reshape %x(%s) : ({source}, {shape.rpartition(" : ")[2]}) -> {result}
  return %r : {result}
}}"""
    x = RNG.standard_normal([int(n) for n in before.split("x") if n]).astype(np.float32)
    wanted = [int(n) if n != "?" else 2 for n in after.split("x") if n]
    found = np.zeros(wanted, np.float32)
    fragir.compile(text)(x, found, on="emulator", check=True)
    assert np.array_equal(found.ravel(), x.ravel())


OPEN = """func.func @f(%x: tensor<?x6xf32>) -> tensor<2x?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : i64
  %c2 = arith.constant 2 : i64
  %c3 = arith.constant 3 : i64
  %d = tensor.dim %x, %c0 : tensor<?x6xf32>
  %i = arith.index_cast %d : index to i64
  %e = arith.remsi %i, %c2 : i64
  %even = arith.cmpi slt, %e, %c1 : i64
  cf.assert %even, "rows come in pairs"
  %n = arith.muli %i, %c3 : i64
  %s = tensor.from_elements %c2, %n : tensor<2xi64>
  %r = tensor.reshape %x(%s) : (tensor<?x6xf32>, tensor<2xi64>) -> tensor<2x?xf32>
  return %r : tensor<2x?xf32>
}"""


def test_shapes_that_are_computed() -> None:
    x = RNG.standard_normal((4, 6)).astype(np.float32)
    (found,) = judged(OPEN, ["x"], [x], "sm_80", {"n3": 12})
    assert np.array_equal(found, x.reshape(2, 12))
    found = np.zeros((2, 9), np.float32)
    with pytest.raises(fragir.FragirError, match="the program asserts: rows come in pairs"):
        fragir.compile(OPEN)(np.zeros((3, 6), np.float32), found, on="emulator")
    text = OPEN.replace("%x: ", "%s: tensor<2xi64>, %x: ")
    text = "".join(line for line in text.splitlines(True) if "from_elements" not in line)
    with pytest.raises(fragir.FragirError, match=r"make its shape by tensor\.from_elements"):
        fragir.compile(text)


# -- functions of IREE -----------------------------------------------------------------------------


def test_functions_of_util() -> None:
    text = """module @jit_f {
  util.func private @twice(%x: tensor<8xf32>) -> tensor<8xf32> {
    %y = arith.addf %x, %x : tensor<8xf32>
    util.return %y : tensor<8xf32>
  }
  util.func public @main(%arg0: tensor<8xf32>) -> tensor<8xf32> {
    %0 = util.call @twice(%arg0) : (tensor<8xf32>) -> tensor<8xf32>
    %1 = arith.addf %0, %arg0 : tensor<8xf32>
    util.return %1 : tensor<8xf32>
  }
}"""
    x = RNG.standard_normal(8).astype(np.float32)
    (found,) = judged(text, ["arg0"], [x], "sm_80")
    assert np.array_equal(found, x + x + x)
