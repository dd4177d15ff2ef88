"""Functions on memory as bufferization leaves them: results, copies, casts, offsets, fills."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import fragir
from tests.linalg.judging import judged

Array = npt.NDArray[Any]


def numbers(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


EXP = "linalg.exp ins({a} : {t}) outs({b} : {t})"


def test_an_argument_is_returned() -> None:
    t = "memref<7x9xf32>"
    text = f"""func.func @f(%a: {t}, %b: {t}) -> ({t}, {t}) {{
  {EXP.format(a="%a", b="%b", t=t)}
  return %b, %b : {t}, {t}
}}"""
    a = numbers(7, 9)
    (found,) = judged(text, "ab", [a, np.zeros_like(a)], "sm_80")
    assert np.allclose(found, np.exp(a), rtol=1e-5)
    assert [x.name for x in fragir.compile(text, target="sm_80").signature] == ["a", "b"]


@pytest.mark.parametrize("size", ["7", "?"])
def test_an_allocation_is_returned(size: str) -> None:
    """It becomes the last argument; the other one is the function's own."""
    t = f"memref<{size}x9xf32>"
    sizes = "(%n)" if size == "?" else "()"
    text = f"""func.func @f(%a: {t}) -> {t} {{
  %c0 = arith.constant 0 : index
  %n = memref.dim %a, %c0 : {t}
  %own = memref.alloc{sizes} : {t}
  %found = memref.alloc{sizes} : {t}
  {EXP.format(a="%a", b="%own", t=t)}
  linalg.add ins(%own, %a : {t}, {t}) outs(%found : {t})
  memref.dealloc %own : {t}
  return %found : {t}
}}"""
    a = numbers(7, 9)
    (found,) = judged(text, "a", [a], "sm_80")
    assert np.allclose(found, np.exp(a) + a, rtol=1e-5)
    assert [x.name for x in fragir.compile(text, target="sm_80").signature] == ["a", "found"]


@pytest.mark.parametrize(
    ("body", "result", "word"),
    [
        ("%v = memref.cast %a : memref<8xf32> to memref<?xf32>", "%v : memref<?xf32>", "a view"),
        ("%v = memref.alloc() : memref<8xf32>", "%v, %v : memref<8xf32>, memref<8xf32>", "twice"),
        ("%v = arith.constant 1 : i32", "%a, %v : memref<8xf32>, i32", "besides memory"),
    ],
)
def test_what_cannot_be_returned(body: str, result: str, word: str) -> None:
    values, _, types = result.partition(" : ")
    text = f"""func.func @f(%a: memref<8xf32>) -> ({types}) {{
  {body}
  {EXP.format(a="%a", b="%a", t="memref<8xf32>")}
  return {values} : {types}
}}"""
    with pytest.raises(fragir.FragirError, match=word):
        fragir.compile(text, target="sm_80")


def test_copies_and_casts() -> None:
    """As MLIR prints them; a function may have nothing else."""
    text = """func.func @f(%a: memref<6x4xf32>, %b: memref<?x4xf32>) {
  %c = memref.cast %a : memref<6x4xf32> to memref<?x4xf32>
  memref.copy %c, %b : memref<?x4xf32> to memref<?x4xf32>
  return
}"""
    a = numbers(6, 4)
    (found,) = judged(text, "ab", [a, np.zeros_like(a)], "sm_80")
    assert np.array_equal(found, a)
    printed = str(fragir.parse(text))
    assert str(fragir.parse(printed)) == printed
    with pytest.raises(fragir.FragirError, match="a memref expected here"):
        fragir.parse(text.replace("to memref<?x4xf32>", "to tensor<?x4xf32>"))


def test_an_offset_that_only_a_launch_knows() -> None:
    """As one-shot bufferization prints arguments: arrays begin with their first element."""
    t = "memref<6x8xf32, strided<[8, 1], offset: ?>>"
    text = f"""func.func @f(%a: {t}, %b: {t}) {{
  {EXP.format(a="%a", b="%b", t=t)}
  return
}}"""
    a = numbers(6, 8)
    (found,) = judged(text, "ab", [a, np.zeros_like(a)], "sm_80")
    assert np.allclose(found, np.exp(a), rtol=1e-5)
    with pytest.raises(fragir.FragirError, match=r"has an offset \(write `offset: \?`"):
        fragir.compile(text.replace("offset: ?", "offset: 4"), target="sm_80")


@pytest.mark.parametrize("filled", ["%a", "%b", "%c"])
def test_operands_that_are_filled_before(filled: str) -> None:
    """What a product reads is computed by a kernel of its own; what it sums onto is not."""
    t = "memref<16x16xf16>"
    text = f"""func.func @f(%a: {t}, %b: {t}, %c: {t}) {{
  %two = arith.constant 2.0 : f16
  linalg.fill ins(%two : f16) outs({filled} : {t})
  linalg.matmul ins(%a, %b : {t}, {t}) outs(%c : {t})
  return
}}"""
    held = {name: numbers(16, 16, seed=at).astype(np.float16) for at, name in enumerate("abc")}
    results = judged(text, "abc", list(held.values()), "sm_80")
    held[filled[1]] = np.full((16, 16), 2, np.float16)
    wide = {name: x.astype(np.float64) for name, x in held.items()}
    assert np.allclose(results[-1], wide["c"] + wide["a"] @ wide["b"], rtol=1e-2, atol=2e-2)
    built = fragir.compile(text, target="sm_80")
    assert len(getattr(built, "kernels", [built])) == (1 if filled == "%c" else 2)
