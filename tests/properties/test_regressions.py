"""Minimal programs of mistakes that random programs, or readers of PTX, have found."""

from __future__ import annotations

import pytest

from .judge import judge

# A cast that changes no bit shares the register of the loop's variable; the next value of the
# variable must not be computed into it while the cast's result is still needed.
CAST_OF_VARIABLE = """
func.func @k(%x: memref<64x8xf32>, %d: memref<8x8xf32>) {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %3 = arith.constant 3 : index
  %z = arith.constant 0 : i32
  %o = arith.constant 8 : i32
  %f = arith.constant 0.0 : f32
  %s0 = frag.fill %f : !frag.tile<8x8xf32>
  %r, %sum = scf.for %i = %0 to %3 step %1 iter_args(%s = %z, %acc = %s0)
      -> (i32, !frag.tile<8x8xf32>) {
    %idx = arith.index_cast %s : i32 to index
    %n = arith.addi %s, %o : i32
    %t = frag.load %x[%idx, 0] : memref<64x8xf32> -> !frag.tile<8x8xf32>
    %a = frag.map %acc, %t : !frag.tile<8x8xf32>, !frag.tile<8x8xf32> -> !frag.tile<8x8xf32> {
    ^bb0(%p: f32, %q: f32):
      %v = arith.addf %p, %q : f32
      frag.yield %v : f32
    }
    scf.yield %n, %a : i32, !frag.tile<8x8xf32>
  }
  frag.store %sum, %d[0, 0] : !frag.tile<8x8xf32>, memref<8x8xf32>
  func.return
}
"""
# Variables change places every round: all copies happen at once.
SWAPPED = """
func.func @k(%x: memref<8x8xf32>, %y: memref<8x8xf32>, %d: memref<8x8xf32>, %e: memref<8x8xf32>) {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %3 = arith.constant 3 : index
  %a = frag.load %x[0, 0] : memref<8x8xf32> -> !frag.tile<8x8xf32>
  %b = frag.load %y[0, 0] : memref<8x8xf32> -> !frag.tile<8x8xf32>
  %p, %q = scf.for %i = %0 to %3 step %1 iter_args(%v = %a, %w = %b)
      -> (!frag.tile<8x8xf32>, !frag.tile<8x8xf32>) {
    %t = frag.map %v, %w : !frag.tile<8x8xf32>, !frag.tile<8x8xf32> -> !frag.tile<8x8xf32> {
    ^bb0(%l: f32, %r: f32):
      %s = arith.subf %l, %r : f32
      frag.yield %s : f32
    }
    scf.yield %w, %t : !frag.tile<8x8xf32>, !frag.tile<8x8xf32>
  }
  frag.store %p, %d[0, 0] : !frag.tile<8x8xf32>, memref<8x8xf32>
  frag.store %q, %e[0, 0] : !frag.tile<8x8xf32>, memref<8x8xf32>
  func.return
}
"""
# Two elements a lane: less than a register of bytes.
TWO_BYTES_A_LANE = """
func.func @k(%x: memref<8x8xi32>, %d: memref<8x8xi32>) {
  %0 = frag.load %x[0, 0] : memref<8x8xi32> -> !frag.tile<8x8xi32>
  %1 = frag.cast %0 : !frag.tile<8x8xi32> -> !frag.tile<8x8xui8>
  %2 = frag.cast %1 : !frag.tile<8x8xui8> -> !frag.tile<8x8xi32>
  frag.store %2, %d[0, 0] : !frag.tile<8x8xi32>, memref<8x8xi32>
  func.return
}
"""
# Three halves a lane: the last register holds one.
SELECT_OF_THREE = """
func.func @k(%x: memref<48x8xbf16>, %d: memref<48x8xbf16>)
    attributes {frag.warps = array<i64: 4, 1>} {
  %0 = frag.load %x[0, 0] : memref<48x8xbf16> -> !frag.tile<48x8xbf16>
  %1 = frag.map %0 : !frag.tile<48x8xbf16> -> !frag.tile<48x8xbf16> {
  ^bb0(%v: bf16):
    %z = arith.constant 0.0 : bf16
    %c = arith.cmpf olt, %v, %z : bf16
    %r = arith.select %c, %z, %v : bf16
    frag.yield %r : bf16
  }
  frag.store %1, %d[0, 0] : !frag.tile<48x8xbf16>, memref<48x8xbf16>
  func.return
}
"""
# 8-bit B with K = 96 over two warps: a group of four matrices would step back along K.
MATRICES_ACROSS_ROWS = """
func.func @k(%a: memref<75x70xf8E5M2>, %b: memref<135x70xf8E4M3FN>, %c: memref<75x135xf32>) {
  frag.matmul %a, %b transposed into %c
    {tile = array<i64: 32, 128, 96>, warps = array<i64: 1, 2>, stages = 4 : i64}
    : memref<75x70xf8E5M2>, memref<135x70xf8E4M3FN> into memref<75x135xf32>
  func.return
}
"""
# More threads than pieces to copy, without cp.async: the spare ones must not read.
SPARE_THREADS = """
func.func @k(%a: memref<32x32xsi8>, %b: memref<32x16xui8>, %c: memref<32x16xi32>) {
  frag.matmul %a transposed, %b into %c
    : memref<32x32xsi8>, memref<32x16xui8> into memref<32x16xi32>
  func.return
}
"""
# A constant A is in registers before wgmma.fence.
CONSTANT_FRAGMENT = """
func.func @k(%b: memref<64x64xf16>, %d: memref<64x64xf32>) {
  %m = memref.alloc() : memref<64x64xf16, #frag.shared<swizzle = 128>>
  frag.copy %b[0, 0] to %m[] : memref<64x64xf16> to memref<64x64xf16, #frag.shared<swizzle = 128>>
  frag.barrier
  %one = arith.constant 1.0 : f16
  %zero = arith.constant 0.0 : f32
  %a = frag.fill %one : !frag.tile<64x64xf16>
  %c = frag.fill %zero : !frag.tile<64x64xf32>
  %r = frag.wgmma %a, %m, %c
    : !frag.tile<64x64xf16>, memref<64x64xf16, #frag.shared<swizzle = 128>>, !frag.tile<64x64xf32>
  frag.store %r, %d[0, 0] : !frag.tile<64x64xf32>, memref<64x64xf32>
  func.return
}
"""
# ptxas takes no literal for two halves of C.
ZERO_HALVES = """
func.func @k(%a: memref<16x16xf16>, %b: memref<16x8xf16>, %d: memref<16x8xf16>) {
  %0 = frag.load %a[0, 0] : memref<16x16xf16> -> !frag.tile<16x16xf16>
  %1 = frag.load %b[0, 0] : memref<16x8xf16> -> !frag.tile<16x8xf16>
  %z = arith.constant 0.0 : f16
  %2 = frag.fill %z : !frag.tile<16x8xf16>
  %3 = frag.mma %0, %1, %2
    : !frag.tile<16x16xf16>, !frag.tile<16x8xf16>, !frag.tile<16x8xf16> -> !frag.tile<16x8xf16>
  frag.store %3, %d[0, 0] : !frag.tile<16x8xf16>, memref<16x8xf16>
  func.return
}
"""
PROGRAMS = {
    "zero-halves": (ZERO_HALVES, "sm_80"),
    "cast-of-variable": (CAST_OF_VARIABLE, "sm_80"),
    "swapped": (SWAPPED, "sm_80"),
    "two-bytes-a-lane": (TWO_BYTES_A_LANE, "sm_80"),
    "select-of-three": (SELECT_OF_THREE, "sm_80"),
    "matrices-across-rows": (MATRICES_ACROSS_ROWS, "sm_89"),
    "spare-threads": (SPARE_THREADS, "sm_75"),
    "constant-fragment": (CONSTANT_FRAGMENT, "sm_90a"),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name: str) -> None:
    program, target = PROGRAMS[name]
    for seed in range(3):
        judge(program, target, seed=seed)


def test_constants_come_before_the_fence() -> None:
    text = judge(CONSTANT_FRAGMENT, "sm_90a").ptx
    _, after = text.split("wgmma.fence.sync.aligned;")
    between, _ = after.split("wgmma.mma_async", 1)
    assert "%" not in between
