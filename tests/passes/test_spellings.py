"""Layouts that are one function, written in two ways, at loops, branches, calls and returns."""

from __future__ import annotations

import numpy as np
import pytest

import fragir
from fragir.errors import FragirError


def tile(lane: str) -> str:
    return f'!frag.tile<16x64xf32, #frag.layout<"warp [2:(8,0)] lane {lane} element [16:ROWS]">>'


A = tile("[32:(0,2)]").replace("[16:ROWS]", "[2:(0,1) 8:(1,0)]")
B = tile("[4:(0,2) 8:(0,8)]").replace("[16:ROWS]", "[2:(0,1) 2:(1,0) 4:(2,0)]")
OTHER = tile("[32:(0,1)]").replace("[16:ROWS]", "[2:(0,32) 8:(1,0)]")
MEMORY = "memref<16x64xf32>"
HEAD = f"""
func.func @f(%a: {MEMORY}, %c: {MEMORY}, %n: index) attributes {{frag.warps = array<i64: 2, 1>}} {{
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %x = frag.load %a[%0, %0] : {MEMORY} -> {A}
  %y = frag.load %a[%0, %0] : {MEMORY} -> {B}
"""
END = f"""
  frag.store %r, %c[%0, %0] : {A}, {MEMORY}
  func.return
}}
"""
FORMS = {
    "a loop": f"""{HEAD}
  %r = scf.for %i = %0 to %n step %1 iter_args(%s = %x) -> ({A}) {{
    scf.yield %y : {B}
  }}{END}""",
    "a branch": f"""{HEAD}
  %p = arith.cmpi slt, %n, %1 : index
  %r = scf.if %p -> ({A}) {{ scf.yield %y : {B} }} else {{ scf.yield %x : {A} }}{END}""",
    "a loop with a condition": f"""{HEAD}
  %r, %m = scf.while (%s = %x, %i = %0) : ({A}, index) -> ({A}, index) {{
    %p = arith.cmpi slt, %i, %n : index
    scf.condition(%p) %s, %i : {A}, index
  }} do {{
  ^bb0(%u: {A}, %j: index):
    %k = arith.addi %j, %1 : index
    scf.yield %y, %k : {B}, index
  }}{END}""",
    "a call": f"""
func.func private @g(%t: {A}) -> {A} {{
  func.return %t : {A}
}}{HEAD}
  %z = func.call @g(%y) : ({B}) -> {B}
  %r = func.call @g(%z) : ({B}) -> {A}{END}""",
    "a function": f"""
func.func private @g(%t: {A}) -> {B} {{
  func.return %t : {A}
}}{HEAD}
  %r = func.call @g(%x) : ({A}) -> {A}{END}""",
}


@pytest.mark.parametrize("form", FORMS)
def test_one_function_written_in_two_ways(form: str) -> None:
    """Nothing is moved for it."""
    kernel = fragir.compile(FORMS[form])
    assert "shfl" not in kernel.ptx
    assert ".shared" not in kernel.ptx
    a = np.arange(16 * 64, dtype=np.float32).reshape(16, 64)
    c = np.zeros_like(a)
    kernel(a, c, 2, on="emulator")
    assert np.array_equal(a, c)


@pytest.mark.parametrize("form", ["a loop", "a call", "a function"])
def test_other_functions_are_still_refused(form: str) -> None:
    with pytest.raises(FragirError, match=r"yield arg|type mismatch|same types"):
        fragir.compile(FORMS[form].replace(B, OTHER))
