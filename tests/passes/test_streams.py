"""Which loads of a loop may run ahead of it."""

from __future__ import annotations

import pytest
from xdsl.dialects import scf

from fragir.compilation.program import parse
from fragir.passes.pipelining.streams import groups_of

PROGRAM = """
func.func private @g(memref<64x64xf16>)
func.func @f(%a: memref<64x64xf16>, %b: memref<64x64xf16>, %c: memref<64x64xf32>) {{
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant 0.0 : f32
  %half = arith.constant 0.0 : f16
  %one = frag.fill %half : !frag.tile<64x64xf16>
  %s = memref.alloc() : memref<64x64xf16, #frag.shared<swizzle = 128>>
  %z = frag.fill %zero : !frag.tile<64x64xf32>
  %sum = scf.for %k = %c0 to %c64 step %c16 iter_args(%t = %z) -> (!frag.tile<64x64xf32>) {{
    %x = frag.load %a[0, %k] : memref<64x64xf16> -> !frag.tile<64x16xf16>
    %y = frag.load %b[%k, 0] : memref<64x64xf16> -> !frag.tile<16x64xf16>
    %u = frag.mma %x, %y, %t
        : !frag.tile<64x16xf16>, !frag.tile<16x64xf16>, !frag.tile<64x64xf32>
        -> !frag.tile<64x64xf32>
    {effect}
    scf.yield %u : !frag.tile<64x64xf32>
  }}
  frag.store %sum, %c[0, 0] : !frag.tile<64x64xf32>, memref<64x64xf32>
  func.return
}}
"""
SHARED = "memref<64x64xf16, #frag.shared<swizzle = 128>>"
EFFECTS = {
    "": ["a", "b"],
    "frag.store %one, %a[0, 0] : !frag.tile<64x64xf16>, memref<64x64xf16>": ["b"],
    "memref.store %half, %b[%c0, %c0] : memref<64x64xf16>": ["a"],
    f"frag.copy tma %s[] to %a[0, 0] : {SHARED} to memref<64x64xf16>": ["b"],
    "%h = memref.load %a[%c0, %c0] : memref<64x64xf16>": ["a", "b"],
    "func.call @g(%b) : (memref<64x64xf16>) -> ()": ["a"],
}


@pytest.mark.parametrize("effect", EFFECTS)
def test_memory_that_the_loop_writes_is_not_read_ahead(effect: str) -> None:
    module = parse(PROGRAM.format(effect=effect))
    (loop,) = [op for op in module.walk() if isinstance(op, scf.ForOp)]
    loads = [load.memory.name_hint for group in groups_of(loop) for load in group.loads]
    assert sorted(map(str, loads)) == EFFECTS[effect]
