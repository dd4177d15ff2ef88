"""`fragir run` of programs that print and assert: stdout stays a document."""

from __future__ import annotations

import json
from pathlib import Path

from .conftest import Fragir

PROGRAM = """\
func.func @k(%x: memref<4x8xi32>, %y: memref<4x8xi32>) {
  %t = frag.load %x[0, 0] : memref<4x8xi32> -> !frag.tile<4x8xi32>
  %p = frag.map %t : !frag.tile<4x8xi32> -> !frag.tile<4x8xi1> {
  ^bb0(%v: i32):
    %one = arith.constant 1 : i32
    %q = arith.cmpi slt, %v, %one : i32
    frag.yield %q : i1
  }
  frag.print "x", %t : !frag.tile<4x8xi32>
  frag.assert %p, "below one" : !frag.tile<4x8xi1>
  frag.store %t, %y[0, 0] : !frag.tile<4x8xi32>, memref<4x8xi32>
  func.return
}
"""


def test_prints_to_stderr(fragir: Fragir, in_folder: Path) -> None:
    (in_folder / "p.mlir").write_text(PROGRAM)
    done = fragir("run", "p.mlir", "--inputs", "zeros", "--on", "emulator", "--json")
    assert done.code == 0, done.err
    assert json.loads(done.out)["result"] == "PASS"
    assert "x[3, 7] = 0 (block 0, 0, 0)\n" in done.err


def test_what_fails(fragir: Fragir, in_folder: Path) -> None:
    """By the reference, at its place in the program, before anything runs."""
    (in_folder / "p.mlir").write_text(PROGRAM)
    done = fragir("run", "p.mlir", "--on", "emulator")
    assert done.code != 0
    assert "p.mlir:10:3: below one: this does not hold at [" in done.err
