"""Errors that xDSL reports elsewhere, or nowhere, get the place where they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from fragir import compiler
from fragir.errors import FragirError

EXAMPLES = Path(__file__).parents[2] / "examples"

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


EARLY = {
    "in a block": (
        """func.func @f(%a: memref<16x16xf16>, %d: memref<16x16xf16>) {
  frag.store %x, %d[0, 0] : !frag.tile<16x16xf16>, memref<16x16xf16>
  %x = frag.load %a[0, 0] : memref<16x16xf16> -> !frag.tile<16x16xf16>
  func.return
}
""",
        2,
        "frag.store uses %x, which is not defined here: its definition stands in line 3",
    ),
    "out of a region": (
        """func.func @f(%c: i1, %d: memref<4xf32>) {
  scf.if %c {
    %x = arith.constant 1.0 : f32
  }
  %y = arith.addf %x, %x : f32
  func.return
}
""",
        5,
        "%x is used, but defined nowhere",
    ),
    "of itself": (
        """func.func @f(%a: i32) {
  %x = arith.addi %a, %x : i32
  func.return
}
""",
        2,
        "arith.addi uses %x, which is not defined here",
    ),
    "in a loop, before": (
        """func.func @f(%a: index) {
  scf.for %i = %a to %a step %a {
    %y = arith.addi %x, %x : index
    %x = arith.constant 1 : index
    scf.yield
  }
  func.return
}
""",
        3,
        "arith.addi uses %x, which is not defined here: its definition stands in line 4",
    ),
}


@pytest.mark.parametrize("name", EARLY)
def test_use_before_definition(name: str) -> None:
    text, line, words = EARLY[name]
    with pytest.raises(FragirError) as caught:
        compiler.compile(text, filename="x.mlir")
    assert (caught.value.file, caught.value.line) == ("x.mlir", line)
    assert caught.value.message.startswith(words)


def test_uses_that_are_right() -> None:
    """From an outer region, from an argument of a block, and from a block that dominates."""
    compiler.parse(
        """func.func @f(%a: index, %c: i1) -> index {
  %one = arith.constant 1 : index
  %s = scf.for %i = %a to %a step %one iter_args(%x = %one) -> (index) {
    %y = arith.addi %i, %one : index
    %z = arith.addi %y, %x : index
    scf.yield %z : index
  }
  cf.cond_br %c, ^bb1, ^bb2(%s : index)
^bb1:
  %t = arith.addi %s, %one : index
  cf.br ^bb2(%t : index)
^bb2(%r: index):
  func.return %r : index
}
"""
    )


BUILT = {  # what xDSL's classes of operations answer with an IndexError or AssertionError
    "a fill without operands": ("  linalg.fill\n", "this linalg.fill cannot be taken"),
    "a product without operands": (
        '  linalg.matmul "x", -1\n',
        "linalg.matmul: it takes 2 inputs and one output, not 0 and 0",
    ),
    "a product of a tile": (
        "  linalg.matmul ins(%a, %b : !frag.tile<16x16xf16>, memref<?x?xf64>) "
        "outs(%b : memref<?x?xf64>)\n",
        "!frag.tile<16x16xf16> is no type of an element",
    ),
    "with results": ("  %0 = linalg.matmul %a[0] : f32\n", "linalg.matmul: it takes 2 inputs"),
}


@pytest.mark.parametrize("name", BUILT)
def test_operations_that_cannot_be_built(name: str) -> None:
    line, words = BUILT[name]
    text = f"func.func @f(%a: !frag.tile<16x16xf16>, %b: memref<?x?xf64>) {{\n{line}}}\n"
    with pytest.raises(FragirError) as caught:
        compiler.parse(text, "x.mlir")
    assert (caught.value.file, caught.value.line) == ("x.mlir", 2)
    assert caught.value.message.startswith(words)


def test_operations_that_xdsl_cannot_verify() -> None:
    """Its verifier of linalg.transpose looks beyond the end of a shape."""
    with pytest.raises(FragirError, match=r"this linalg\.transpose cannot be taken") as caught:
        compiler.parse(
            """func.func @f(%a: memref<?x?xf16>, %d: memref<?x?xf16>) {
  linalg.transpose ins(%d : memref<?x?xf16>) outs(%a : memref<?x?xf16>) permutation = [7, 0]
  func.return
}
"""
        )
    assert caught.value.line == 2


def test_elements_that_are_not_compared() -> None:
    """setp has no 8-bit floats (PTX ISA 9.2, section 9.7.6.2)."""
    text = """func.func @k(%p: !ptx.ptr<global>) attributes {ptx.ntid = 32 : i64} {
  %v = ptx.load %p[0] : !ptx.ptr<global> -> vector<4xf8E4M3FN>
  %0 = ptx.compare "olt" %v, %v : vector<4xf8E4M3FN> -> vector<4xi1>
  func.return
}
"""
    with pytest.raises(FragirError, match="e4m3 is not compared") as caught:
        compiler.compile(text)
    assert caught.value.line == 3


WRONG_LEVEL = [
    ("gemm_frag", "-p convert-frag-to-ptx", "frag.fill on tiles without a layout", "frag-place"),
    ("gemm", "-p convert-frag-to-ptx", "frag.matmul is left", "frag-tile"),
    ("linalg_matmul", "-p convert-frag-to-ptx", "linalg.matmul is left", "convert-linalg-to-frag"),
    ("linalg_tensors", "-p convert-linalg-to-frag", "tensor.dim is left", "frag-bufferize"),
    ("gemm_placed", "-t ptx", "frag.load is left, which -t ptx cannot take", "convert-frag-to-ptx"),
    ("gemm", "-t ptx", "frag.matmul is left, which -t ptx cannot take", "frag-tile"),
]


@pytest.mark.parametrize(("program", "options", "words", "first"), WRONG_LEVEL)
def test_a_pass_too_early(
    program: str, options: str, words: str, first: str, capsys: pytest.CaptureFixture[str]
) -> None:
    from fragir.cli.opt import main

    file = EXAMPLES / f"{program}.mlir"
    assert main([str(file), *options.split()]) == 1
    error = capsys.readouterr().err
    assert error.startswith(f"error: {file}:")
    assert words in error
    assert f"run {first} first" in error
    line = int(error.removeprefix(f"error: {file}:").split(":")[0])
    assert file.read_text().split("\n")[line - 1] in error  # the source line is shown
