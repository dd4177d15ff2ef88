"""Integers of one, eight and sixteen bits: memory, arithmetic, comparisons, reductions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.linalg.judging import judged

Array = npt.NDArray[Any]
ARRAYS: dict[str, Any] = {"i1": np.bool_, "i8": np.int8, "i16": np.int16}
WITHOUT_SIGN: dict[str, Any] = {"i8": np.uint8, "i16": np.uint16}
SHAPE = (17, 33)


def elementwise(inputs: Sequence[str], output: str, body: str, sizes: str = "17x33x") -> str:
    """A function of x, y, z with a generic whose body reads %a, %b, %c of them and gives %r."""
    names, count = "xyz"[: len(inputs)], len(inputs)
    types = [f"tensor<{sizes}{x}>" for x in inputs]
    arguments = ", ".join(f"%{n}: {t}" for n, t in zip(names, types, strict=True))
    maps = ", ".join(["affine_map<(i, j) -> (i, j)>"] * (count + 1))
    elements = ", ".join(f"%{n}: {t}" for n, t in zip("abc", inputs, strict=False))
    operands = ", ".join(f"%{n}" for n in names)
    return f"""func.func @f({arguments}) -> tensor<{sizes}{output}> {{
  %e = tensor.empty() : tensor<{sizes}{output}>
  %o = linalg.generic {{indexing_maps = [{maps}], iterator_types = ["parallel", "parallel"]}}
      ins({operands} : {", ".join(types)}) outs(%e : tensor<{sizes}{output}>) {{
  ^bb0({elements}, %old: {output}):
    {body}
    linalg.yield %r : {output}
  }} -> tensor<{sizes}{output}>
  return %o : tensor<{sizes}{output}>
}}"""


def numbers(element: str, seed: int, least: int | None = None, most: int | None = None) -> Array:
    """Random numbers of the type, among them its ends."""
    rng = np.random.default_rng(seed)
    if element == "i1":
        return rng.random(SHAPE) < 0.5
    info = np.iinfo(ARRAYS[element])
    low, high = info.min if least is None else least, info.max if most is None else most
    found = rng.integers(low, high + 1, SHAPE).astype(ARRAYS[element])
    found[0, :2] = low, high
    return found


def truncated(x: Array, y: Array) -> Array:
    """A quotient rounded to zero."""
    return (np.sign(x) * np.sign(y) * (np.abs(x) // np.abs(y))).astype(x.dtype)


# by operation: what numpy computes in 64 bits, and whether the operands have a sign
ARITHMETIC: dict[str, tuple[Callable[[Array, Array], Array], bool]] = {
    "addi": (np.add, True),
    "subi": (np.subtract, True),
    "muli": (np.multiply, True),
    "andi": (np.bitwise_and, True),
    "ori": (np.bitwise_or, True),
    "xori": (np.bitwise_xor, True),
    "maxsi": (np.maximum, True),
    "minsi": (np.minimum, True),
    "maxui": (np.maximum, False),
    "minui": (np.minimum, False),
    "divsi": (truncated, True),
    "divui": (np.floor_divide, False),
    "remsi": (np.fmod, True),
    "remui": (np.mod, False),
    "floordivsi": (np.floor_divide, True),
    "shli": (np.left_shift, True),
    "shrsi": (np.right_shift, True),
    "shrui": (np.right_shift, False),
}


def wide(array: Array, element: str, signed: bool) -> Array:
    return (array if signed else array.view(WITHOUT_SIGN[element])).astype(np.int64)


@pytest.mark.parametrize("element", ["i8", "i16"])
@pytest.mark.parametrize("name", sorted(ARITHMETIC))
def test_arithmetic(name: str, element: str) -> None:
    function, signed = ARITHMETIC[name]
    a = numbers(element, 0)
    b = numbers(element, 1)
    if name.startswith("sh"):
        b = numbers(element, 1, 0, 8 * a.itemsize - 1)
    elif "div" in name or "rem" in name:
        b = numbers(element, 1, 1)
        b[1:5] *= -1 if signed else 1
    (found,) = judged(
        elementwise([element] * 2, element, f"%r = arith.{name} %a, %b : {element}"),
        "xy",
        [a, b],
        "sm_80",
    )
    wanted = function(wide(a, element, signed), wide(b, element, signed))
    assert np.array_equal(found, wanted.astype(ARRAYS[element]))


RELATIONS: dict[str, tuple[Callable[[Array, Array], Array], bool]] = {
    "eq": (np.equal, True),
    "ne": (np.not_equal, True),
    "slt": (np.less, True),
    "sle": (np.less_equal, True),
    "sgt": (np.greater, True),
    "sge": (np.greater_equal, True),
    "ult": (np.less, False),
    "ule": (np.less_equal, False),
    "ugt": (np.greater, False),
    "uge": (np.greater_equal, False),
}


@pytest.mark.parametrize("element", ["i1", "i8", "i16"])
@pytest.mark.parametrize("name", sorted(RELATIONS))
def test_comparisons(name: str, element: str) -> None:
    """Of one bit, 1 is -1 where a comparison has a sign."""
    function, signed = RELATIONS[name]
    a, b = numbers(element, 0), numbers(element, 1)
    b[3] = a[3]
    (found,) = judged(
        elementwise([element] * 2, "i1", f"%r = arith.cmpi {name}, %a, %b : {element}"),
        "xy",
        [a, b],
        "sm_90a",
    )
    if element == "i1":
        sign = -1 if signed else 1
        wanted = function(sign * a.astype(np.int64), sign * b.astype(np.int64))
    else:
        wanted = function(wide(a, element, signed), wide(b, element, signed))
    assert found.dtype == np.bool_
    assert np.array_equal(found, wanted)


@pytest.mark.parametrize("element", ["i1", "i8", "i16"])
def test_choices(element: str) -> None:
    c, a, b = numbers("i1", 0), numbers(element, 1), numbers(element, 2)
    body = f"%r = arith.select %a, %b, %c : {element}"
    (found,) = judged(
        elementwise(["i1", element, element], element, body), "xyz", [c, a, b], "sm_80"
    )
    assert np.array_equal(found, np.where(c, a, b))


@pytest.mark.parametrize("element", ["i8", "i16"])
@pytest.mark.parametrize("name", ["ctlz", "cttz", "ctpop", "absi"])
def test_functions(name: str, element: str) -> None:
    a = numbers(element, 0)
    a[5] = 0
    body = f"%r = math.{name} %a : {element}"
    (found,) = judged(elementwise([element], element, body), "x", [a], "sm_80")
    bits = 8 * a.itemsize
    texts = [f"{int(x):0{bits}b}" for x in a.view(WITHOUT_SIGN[element]).ravel()]
    counts = {
        "ctlz": [bits - len(t.lstrip("0")) for t in texts],
        "cttz": [bits - len(t.rstrip("0")) for t in texts],
        "ctpop": [t.count("1") for t in texts],
        "absi": [abs(int(x)) for x in a.ravel()],
    }
    assert np.array_equal(found.ravel(), np.array(counts[name]).astype(a.dtype))


# --- memory of i1 ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "function"),
    [
        ("%r = arith.andi %a, %b : i1", np.logical_and),
        ("%r = arith.ori %a, %b : i1", np.logical_or),
        ("%r = arith.xori %a, %b : i1", np.logical_xor),
        ("%r = arith.addi %a, %b : i1", np.logical_xor),
        ("%r = arith.muli %a, %b : i1", np.logical_and),
        ("%r = arith.maxsi %a, %b : i1", np.logical_and),
        ("%r = arith.maxui %a, %b : i1", np.logical_or),
        ("%t = arith.constant true\n %n = arith.xori %a, %t : i1\n %r = arith.andi %n, %b : i1",
         np.less),
    ],
)  # fmt: skip
def test_logic(body: str, function: Callable[[Array, Array], Array]) -> None:
    a, b = numbers("i1", 0), numbers("i1", 1)
    (found,) = judged(elementwise(["i1", "i1"], "i1", body), "xy", [a, b], "sm_80")
    assert np.array_equal(found, function(a, b))


def test_truth_as_a_number_and_back() -> None:
    a = numbers("i1", 0)
    (found,) = judged(
        elementwise(["i1"], "f32", "%r = arith.uitofp %a : i1 to f32"), "x", [a], "sm_80"
    )
    assert np.array_equal(found, a.astype(np.float32))
    (found,) = judged(
        elementwise(["i1"], "i8", "%r = arith.extsi %a : i1 to i8"), "x", [a], "sm_80"
    )
    assert np.array_equal(found, -a.astype(np.int8))


@settings(max_examples=12, deadline=None)
@given(data=st.data())
def test_rows_with_any_and_all(data: st.DataObject) -> None:
    """A comparison and its reduction, of sizes that only a launch knows."""
    name, start = data.draw(st.sampled_from([("ori", "false"), ("andi", "true")]))
    shape = [data.draw(st.sampled_from([0, 1, 3, 17, 64, 130])) for _ in range(2)]
    text = f"""func.func @f(%a: tensor<?x?xf32>) -> (tensor<?xi1>, tensor<?x?xi1>) {{
  %start = arith.constant {start}
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = tensor.dim %a, %c0 : tensor<?x?xf32>
  %n = tensor.dim %a, %c1 : tensor<?x?xf32>
  %e = tensor.empty(%m, %n) : tensor<?x?xi1>
  %p = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>,
      affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}}
      ins(%a : tensor<?x?xf32>) outs(%e : tensor<?x?xi1>) {{
  ^bb0(%x: f32, %old: i1):
    %c = arith.cmpf ogt, %x, %zero : f32
    linalg.yield %c : i1
  }} -> tensor<?x?xi1>
  %row = tensor.empty(%m) : tensor<?xi1>
  %begin = linalg.fill ins(%start : i1) outs(%row : tensor<?xi1>) -> tensor<?xi1>
  %o = linalg.reduce {{ arith.{name} }} ins(%p : tensor<?x?xi1>) outs(%begin : tensor<?xi1>)
      dimensions = [1]
  return %o, %p : tensor<?xi1>, tensor<?x?xi1>
}}"""
    lowest = data.draw(st.sampled_from([-1.0, 0.0, 0.9]))
    a = np.random.default_rng(0).uniform(lowest - 0.95, 1, shape).astype(np.float32)
    rows, each = judged(text, "a", [a], data.draw(st.sampled_from(["sm_80", "sm_90a"])))
    assert np.array_equal(each, a > 0)
    assert np.array_equal(rows, (np.any if name == "ori" else np.all)(a > 0, axis=1))


@pytest.mark.parametrize("name", ["addi", "maxsi", "minui", "xori", "muli"])
@pytest.mark.parametrize("element", ["i8", "i16"])
def test_reductions_wrap(name: str, element: str) -> None:
    a = numbers(element, 4)
    text = f"""func.func @f(%a: memref<17x33x{element}>, %o: memref<17x{element}>) {{
  linalg.reduce {{ arith.{name} }} ins(%a : memref<17x33x{element}>) outs(%o : memref<17x{element}>)
      dimensions = [1]
  func.return
}}"""
    o = np.ones(17, a.dtype)
    (found,) = judged(text, "ao", [a, o], "sm_80")
    if name == "minui":
        unsigned = WITHOUT_SIGN[element]
        wanted = np.minimum(a.view(unsigned).min(1), 1).astype(a.dtype)
    else:
        function, _ = ARITHMETIC[name]
        wanted = np.ones(17, np.int64)
        for column in a.astype(np.int64).T:
            wanted = function(wanted, column)
            wanted = wanted.astype(a.dtype).astype(np.int64)
    assert np.array_equal(found, wanted)


@pytest.mark.parametrize("operation", ["sitofp", "uitofp"])
@pytest.mark.parametrize("element", ["i16", "i32", "i64"])
def test_integers_of_any_width_in_f16(element: str, operation: str) -> None:
    """Rounded once: f32 is exact below 2^24, where the numbers of f16 have long ended."""
    dtype = np.dtype(element.replace("i", "int"))
    near = [2049, 2051, 4098, 4102, 65503, 65504, 65519, 65520, 65521, 2**24 + 1, 2**31 - 1]
    x = np.resize(np.array([*range(600), *(-n for n in near), *near]).astype(dtype), SHAPE)
    unsigned = dtype if operation == "sitofp" else np.dtype(f"u{dtype}")
    text = elementwise([element], "f16", f"%r = arith.{operation} %a : {element} to f16")
    (found,) = judged(text, "x", [x], "sm_80")
    with np.errstate(over="ignore"):
        wanted = x.view(unsigned).astype(np.float64).astype(np.float16)
    assert np.array_equal(found, wanted)
