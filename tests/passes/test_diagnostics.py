"""Errors that xDSL reports elsewhere, or nowhere, get the place where they are."""

from __future__ import annotations

import pytest

from fragir import compiler
from fragir.errors import FragirError

CASES = {
    "used in a region, defined nowhere": (
        """func.func @f(%a: f32) {
  %x = arith.addf %a, %b : f32
  func.return
}
""",
        (2, 23),
        "%b is used, but defined nowhere",
    ),
    "several": (
        """func.func @f(%a: f32) {
  %x = arith.addf %c, %b : f32
  %y = arith.addf %b, %c : f32
  func.return
}
""",
        (2, 19),
        "%c, %b are used, but defined nowhere",
    ),
    "one of several results": (
        """func.func @f(%a: memref<4xf32>, %c: i1) {
  memref.store %x#1, %a[%i] : memref<4xf32>
  func.return
}
""",
        (2, 16),
        "%x, %i are used, but defined nowhere",
    ),
    "a block": (
        """func.func @f() {
  cf.br ^bb1
^bb2:
  func.return
}
""",
        (2, 9),
        "reference to block",
    ),
    "two blocks of one name": (
        """func.func @f() {
^bb1:
  cf.br ^bb1
^bb1:
  func.return
}
""",
        (4, 1),
        "re-declaration of block",
    ),
    "an empty function": (
        """func.func @g() {
  func.return
}
func.func @f(%a: f32) {
}
""",
        (4, 1),
        "func.func contains empty block",
    ),
    "an empty loop": (
        """func.func @f(%a: index) {
  "scf.for"(%a, %a, %a) ({
  ^bb0(%i: index):
  }) : (index, index, index) -> ()
  func.return
}
""",
        (2, 3),
        "empty block",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_places(case: str) -> None:
    text, place, words = CASES[case]
    with pytest.raises(FragirError) as caught:
        compiler.parse(text, "x.mlir")
    error = caught.value
    assert (error.file, error.line, error.col) == ("x.mlir", *place)
    assert words in error.sentence
    assert error.source == text.splitlines()[place[0] - 1]


def test_a_value_may_be_defined_later() -> None:
    compiler.parse("""
        func.func @f() {
          cf.br ^bb2
        ^bb1:
          %y = arith.addi %x, %x : i32
          func.return
        ^bb2:
          %x = arith.constant 1 : i32
          cf.br ^bb1
        }""")


def test_a_text_that_ends_early() -> None:
    with pytest.raises(FragirError, match="the text ends before it is complete"):
        compiler.parse("func.func @f(%a: f32) {\n  %x = arith.addf %a, %b : f32\n", "x.mlir")
