"""`dense<...>`: bits in hexadecimal, and one number for any many elements."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import fragir
from tests.linalg.judging import judged

Array = npt.NDArray[Any]
INFINITY, NAN = 0x7F800000, 0x7FC00000


def constant(text: str, type_: str, result: str = "arith.maxnumf") -> str:
    """A function of x whose body puts elements of a constant together with those of x."""
    element = type_.rpartition("x")[2]
    return f"""#map = affine_map<(i, j) -> (i, j)>
func.func @f(%x: tensor<{type_}>) -> tensor<{type_}> {{
  %c = arith.constant dense<{text}> : tensor<{type_}>
  %e = tensor.empty() : tensor<{type_}>
  %r = linalg.generic {{indexing_maps = [#map, #map, #map],
      iterator_types = ["parallel", "parallel"]}}
      ins(%x, %c : tensor<{type_}>, tensor<{type_}>) outs(%e : tensor<{type_}>) {{
  ^bb0(%a: {element}, %b: {element}, %o: {element}):
    %y = {result} %a, %b : {element}
    linalg.yield %y : {element}
  }} -> tensor<{type_}>
  return %r : tensor<{type_}>
}}"""


@pytest.mark.parametrize("text", ["0xFF800000", "[[0xFF800000, 0xFF800000, 0xFF800000]]"])
def test_bits_of_a_float(text: str) -> None:
    """The least number is minus infinity, as others print it, and no large integer."""
    x = np.array([[1.5, -3e38, -2.0]], np.float32)
    (found,) = judged(constant(text, "1x3xf32"), "x", [x], "sm_80")
    assert np.array_equal(found, x)


def test_bits_beside_numbers() -> None:
    x = np.ones((1, 4), np.float16)
    text = "[[0xC000, 2.5, 0x7C00, -1.0]]"
    (found,) = judged(constant(text, "1x4xf16", "arith.addf"), "x", [x], "sm_80")
    assert found.tolist() == [[-1.0, 3.5, np.inf, 0.0]]


def test_hexadecimal_integers_are_numbers() -> None:
    x = np.zeros((1, 2), np.int32)
    (found,) = judged(constant("[[0x10, -3]]", "1x2xi32", "arith.addi"), "x", [x], "sm_80")
    assert found.tolist() == [[16, -3]]


@pytest.mark.parametrize("text", ["0x1FF800000", "-0x3F800000"])
def test_bits_that_a_float_has_not(text: str) -> None:
    with pytest.raises(fragir.FragirError, match="f32 has 32 bits, written without a sign"):
        fragir.parse(constant(text, "1x3xf32"))


@pytest.mark.parametrize("text", ["2.0", f"{INFINITY:#X}".replace("X", "x"), "0xFF800000"])
def test_printed_and_read_again(text: str) -> None:
    printed = str(fragir.parse(constant(text, "400x400xf32")))
    assert len(printed) < 2000
    assert str(fragir.parse(printed)) == printed


def test_one_number_for_many_elements() -> None:
    """More than are ever written out; a NaN is one, too."""
    x = np.random.default_rng(0).standard_normal((300, 300)).astype(np.float32)
    (found,) = judged(constant("0.5", "300x300xf32"), "x", [x], "sm_80")
    assert np.array_equal(found, np.maximum(x, np.float32(0.5)))
    (found,) = judged(constant(f"{NAN:#x}", "300x300xf32"), "x", [x], "sm_80")
    assert np.array_equal(found, x)


def test_tables_have_a_limit() -> None:
    """One of values; constants of any size are held in memory."""
    values = ", ".join(["%x"] * 66)
    text = f"""func.func @f(%x: f32) -> tensor<66xf32> {{
      %t = tensor.from_elements {values} : tensor<66xf32>
      return %t : tensor<66xf32>
    }}"""
    with pytest.raises(fragir.FragirError, match="a table of 66 elements is not written out"):
        fragir.compile(text, target="sm_80")
