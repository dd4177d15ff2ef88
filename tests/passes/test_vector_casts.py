"""Casts of arith on vectors, which xDSL's own refuse: lanes are a program again, and right.

The other judge is numpy, which casts integers by their bits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import fragir
from fragir.dialects import ptx
from tests.properties.judge import survives

Array = npt.NDArray[Any]
COUNT = 256

# rule: type before and after, numpy's types of the arrays, what numpy makes of x
CASES: dict[str, tuple[str, str, Any, Any, Callable[[Array], Array]]] = {
    "sitofp": ("i32", "f32", np.int32, np.float32, lambda x: x.astype(np.float32)),
    "uitofp": ("i32", "f32", np.int32, np.float32, lambda x: x.view("u4").astype(np.float32)),
    "fptosi": ("f32", "i32", np.float32, np.int32, lambda x: x.astype(np.int32)),
    "fptoui": ("f32", "i32", np.float32, np.int32, lambda x: abs(x).astype("u4").view("i4")),
    "extsi": ("i8", "i32", np.int8, np.int32, lambda x: x.astype(np.int32)),
    "extui": ("i8", "i32", np.int8, np.int32, lambda x: x.view("u1").astype(np.int32)),
    "trunci": ("i32", "i8", np.int32, np.int8, lambda x: x.astype(np.int8)),
    "index_cast": ("i32", "i32", np.int32, np.int32, lambda x: x),
}


def program(rule: str) -> str:
    source, result, *_ = CASES[rule]
    lines = {
        "fptoui": [f"%p = math.absf %v : {source}", "%r = arith.fptoui %p : f32 to i32"],
        "index_cast": [
            "%p = arith.index_cast %v : i32 to index",
            "%r = arith.index_cast %p : index to i32",
        ],
    }.get(rule, [f"%r = arith.{rule} %v : {source} to {result}"])
    tiles = [f"!frag.tile<{COUNT}x{t}>" for t in (source, result)]
    return "\n".join(
        [
            f"func.func @f(%x: memref<{COUNT}x{source}>, %y: memref<{COUNT}x{result}>) {{",
            f"%a = frag.load %x[0] : memref<{COUNT}x{source}> -> {tiles[0]}",
            f"%b = frag.map %a : {tiles[0]} -> {tiles[1]} {{",
            f"^bb0(%v: {source}):",
            *lines,
            f"frag.yield %r : {result}",
            "}",
            f"frag.store %b, %y[0] : {tiles[1]}, memref<{COUNT}x{result}>",
            "func.return }",
        ]
    )


def values(kind: Any) -> Array:
    rng = np.random.default_rng(5)
    if kind is np.float32:
        return (1000 * rng.standard_normal(COUNT)).astype(np.float32)
    bits = np.dtype(kind).itemsize * 8
    found: Array = rng.integers(-(2 ** (bits - 1)), 2 ** (bits - 1), COUNT).astype(kind)
    return found


@pytest.mark.parametrize("rule", ptx.CAST_RULES)
def test_lanes_are_a_program_again(rule: str) -> None:
    text = program(rule)
    module = fragir.lower(fragir.parse(text))
    assert any(isinstance(op, ptx.CvtOp) and op.cast == f"arith.{rule}" for op in module.walk())
    survives("lane", module)
    _, _, kind, made, expected = CASES[rule]
    x, y = values(kind), np.zeros(COUNT, made)
    fragir.compile(text)(x, y, on="emulator")
    np.testing.assert_array_equal(y, expected(x))
    of_lanes = np.zeros(COUNT, made)
    fragir.compile(module)(x, of_lanes, on="emulator")
    np.testing.assert_array_equal(of_lanes, y)


@pytest.mark.parametrize("words", ['as "bitcast"', 'as "sitofp" in [0, 1, 2, 3]'])
def test_no_other_casts(words: str) -> None:
    text = f"""func.func @f(%x: vector<4xi32>) {{
  %y = ptx.cvt %x {words} : vector<4xi32> -> vector<4xf32>
  func.return
}}"""
    with pytest.raises(fragir.FragirError, match=r"ptx\.cvt is `as` one of sitofp"):
        fragir.parse(text)
