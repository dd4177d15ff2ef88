// Dropout: y = x / (1 - p) where a random number is at least p, else 0. The random numbers are a
// function of the seed and of the element's place alone (Philox), so no mask is kept: the backward
// pass runs the same kernel on the gradient, with the same seed. One evaluation of Philox gives
// four numbers, for four neighbours.
//
//   fragir run examples/elementwise/dropout.mlir --size n=3001 --arg p=0.25 --arg seed=42

!part = !frag.tile<1024xf32>
!bits = !frag.tile<256xi32>
!two = !frag.tile<256x2xi32>
!four = !frag.tile<256x2x2xi32>
!words = !frag.tile<1024xi32>

func.func @dropout(%seed: i64, %p: f32, %x: memref<?xf32> {frag.sizes = ["n"]},
                   %y: memref<?xf32> {frag.sizes = ["n"]})
    attributes {frag.grid = #frag.grid<n by 1024>, frag.warps = array<i64: 4, 1>} {
  %256 = arith.constant 256 : index
  %1024 = arith.constant 1024 : index
  %b = frag.block_id x
  %at = arith.muli %b, %1024 : index
  %quarter = arith.muli %b, %256 : index
  %first = arith.index_cast %quarter : index to i32
  %i = frag.iota dim 0 : !bits
  %offsets = frag.map %i : !bits -> !bits {
  ^bb0(%v: i32):
    %r = arith.addi %v, %first : i32
    frag.yield %r : i32
  }
  %r0, %r1, %r2, %r3 = frag.random %seed, %offsets : i64, !bits
  // r0 r1 r2 r3 of the first offset, then of the next
  %even = frag.join %r0, %r2 : !bits, !bits -> !two
  %odd = frag.join %r1, %r3 : !bits, !bits -> !two
  %all = frag.join %even, %odd : !two, !two -> !four
  %words = frag.reshape %all : !four -> !words
  %one = arith.constant 1.0 : f32
  %kept = arith.subf %one, %p : f32
  %scale = arith.divf %one, %kept : f32
  %t = frag.load %x[%at] masked : memref<?xf32> -> !part
  %out = frag.map %words, %t : !words, !part -> !part {
  ^bb0(%w: i32, %v: f32):
    %8 = arith.constant 8 : i32
    %step = arith.constant 5.9604644775390625e-08 : f32
    %zero = arith.constant 0.0 : f32
    %upper = arith.shrui %w, %8 : i32
    %whole = arith.sitofp %upper : i32 to f32
    %u = arith.mulf %whole, %step : f32
    %keep = arith.cmpf oge, %u, %p : f32
    %scaled = arith.mulf %v, %scale : f32
    %r = arith.select %keep, %scaled, %zero : f32
    frag.yield %r : f32
  }
  frag.store %out, %y[%at] masked : !part, memref<?xf32>
  func.return
}
