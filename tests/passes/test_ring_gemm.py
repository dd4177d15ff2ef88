"""A product whose loop is written with a ring becomes what `frag-tile` writes by hand."""

from __future__ import annotations

from pathlib import Path

import fragir
from tests.properties.judge import judge

EXAMPLE = Path(__file__).parents[2] / "examples" / "gemm.mlir"
A = "memref<128x32xf16, #frag.shared<swizzle = 64>>"
B = "memref<32x128xf16, #frag.shared<swizzle = 128>>"
X = "memref<?x?xf16>"
T = "!frag.tile<128x128xf32>"
PROGRAM = f"""
!ring = !frag.ring<{A}, {B}>
!slot = !frag.slot<{A}, {B}>
func.func @gemm(%a: {X} {{frag.sizes = ["m", "k"]}}, %b: {X} {{frag.sizes = ["k", "n"]}},
                %c: memref<?x?xf32> {{frag.sizes = ["m", "n"]}}, %alpha: f32, %beta: f32)
    attributes {{frag.grid = #frag.grid<n by 128, m by 128>, frag.warps = array<i64: 2, 2>}} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %k = memref.dim %a, %c1 : {X}
  %bx = frag.block_id x
  %col = arith.muli %bx, %c128 : index
  %by = frag.block_id y
  %row = arith.muli %by, %c128 : index
  %ring = frag.ring 3 : !ring
  %zero = arith.constant 0.0 : f32
  %start = frag.fill %zero : {T}
  scf.for %k0 = %c0 to %c64 step %c32 {{
    %s = frag.acquire %ring : !ring
    %sa = frag.part %s[0] : !slot
    %sb = frag.part %s[1] : !slot
    frag.copy async %a[%row, %k0] to %sa[] masked : {X} to {A}
    frag.copy async %b[%k0, %col] to %sb[] masked : {X} to {B}
    frag.publish %s : !slot
  }}
  %sum = scf.for %k0 = %c0 to %k step %c32 iter_args(%t = %start) -> ({T}) {{
    %full = frag.await %ring : !ring
    %ahead = arith.addi %k0, %c64 : index
    %more = arith.cmpi slt, %ahead, %k : index
    %free = frag.acquire %ring : !ring
    scf.if %more {{
      %fa = frag.part %free[0] : !slot
      %fb = frag.part %free[1] : !slot
      frag.copy async %a[%row, %ahead] to %fa[] masked : {X} to {A}
      frag.copy async %b[%ahead, %col] to %fb[] masked : {X} to {B}
    }}
    frag.publish %free : !slot
    %ra = frag.part %full[0] : !slot
    %rb = frag.part %full[1] : !slot
    %ta = frag.load %ra[0, 0] : {A} -> !frag.tile<128x32xf16>
    %tb = frag.load %rb[0, 0] : {B} -> !frag.tile<32x128xf16>
    %d = frag.mma %ta, %tb, %t : !frag.tile<128x32xf16>, !frag.tile<32x128xf16>, {T} -> {T}
    frag.release %full : !slot
    scf.yield %d : {T}
  }}
  %old = frag.load %c[%row, %col] masked : memref<?x?xf32> -> {T}
  %result = frag.map %sum, %old : {T}, {T} -> {T} {{
  ^bb0(%u: f32, %v: f32):
    %scaled = arith.mulf %alpha, %u : f32
    %kept = arith.mulf %beta, %v : f32
    %w = arith.addf %scaled, %kept : f32
    frag.yield %w : f32
  }}
  frag.store %result, %c[%row, %col] masked : {T}, memref<?x?xf32>
  func.return
}}"""
WAITS = ("cp.async.wait", "cp.async.commit", "bar.sync")


def waits(ptx: str) -> list[str]:
    """What a kernel waits with, in order."""
    lines = (line.strip() for line in ptx.splitlines())
    return [line for line in lines if line.startswith(WAITS)]


def test_it_waits_as_the_schedule_of_a_matmul_does() -> None:
    kernel = judge(PROGRAM, "sm_80", {"m": 40, "n": 24, "k": 96}, assemble=False)
    by_hand = fragir.compile(EXAMPLE.read_text(), target="sm_80")
    assert waits(kernel.ptx) == waits(by_hand.ptx)
    assert waits(kernel.ptx).count("bar.sync 0;") == 1
    assert "cp.async.wait_group 1;" in waits(kernel.ptx)
    # one more register goes round the loop: the slot that is filled is not told by the one read
    assert kernel.ptx.count(";") <= by_hand.ptx.count(";") + 8
