// y[i] = x[0] + ... + x[i], of any length, by two kernels: `sums` leaves what each 1024 elements add up
// to, `prefix` adds up the sums of the blocks before its own by itself and scans its 1024 elements. So
// no block waits for another, which is only sound where all blocks run at once; x is read twice.
//
//   fragir run examples/data/prefix_sum.mlir --entry sums --size n=5000,b=5
//   fragir run examples/data/prefix_sum.mlir --entry prefix --size n=5000,b=5

!part = !frag.tile<1024xf32>
!numbers = !frag.tile<1024xi32>

func.func @sums(%x: memref<?xf32> {frag.sizes = ["n"]}, %s: memref<?xf32> {frag.sizes = ["b"]})
    attributes {frag.grid = #frag.grid<n by 1024>, frag.warps = array<i64: 4, 1>} {
  %1024 = arith.constant 1024 : index
  %b = frag.block_id x
  %first = arith.muli %b, %1024 : index
  %t = frag.load %x[%first] masked : memref<?xf32> -> !part
  %sum = frag.reduce add dim 0 %t : !part -> f32
  %one = frag.fill %sum : !frag.tile<1xf32>
  frag.store %one, %s[%b] masked : !frag.tile<1xf32>, memref<?xf32>
  func.return
}

func.func @prefix(%x: memref<?xf32> {frag.sizes = ["n"]}, %s: memref<?xf32> {frag.sizes = ["b"]},
                  %y: memref<?xf32> {frag.sizes = ["n"]})
    attributes {frag.grid = #frag.grid<n by 1024>, frag.warps = array<i64: 4, 1>} {
  %0 = arith.constant 0 : index
  %1024 = arith.constant 1024 : index
  %zero = arith.constant 0.0 : f32
  %b = frag.block_id x
  %first = arith.muli %b, %1024 : index
  %t = frag.load %x[%first] masked : memref<?xf32> -> !part
  %none = frag.fill %zero : !part
  %number = frag.iota dim 0 : !numbers
  %before = scf.for %j = %0 to %b step %1024 iter_args(%sum = %none) -> (!part) {
    %some = frag.load %s[%j] masked : memref<?xf32> -> !part
    %left = arith.subi %b, %j : index
    %count = arith.index_cast %left : index to i32
    %more = frag.map %sum, %some, %number : !part, !part, !numbers -> !part {
    ^bb0(%u: f32, %v: f32, %i: i32):
      %earlier = arith.cmpi slt, %i, %count : i32
      %w = arith.select %earlier, %v, %zero : f32
      %r = arith.addf %u, %w : f32
      frag.yield %r : f32
    }
    scf.yield %more : !part
  }
  %all = frag.reduce add dim 0 %before : !part -> f32
  %scan = frag.scan add dim 0 %t : !part
  %y0 = frag.map %scan : !part -> !part {
  ^bb0(%v: f32):
    %r = arith.addf %all, %v : f32
    frag.yield %r : f32
  }
  frag.store %y0, %y[%first] masked : !part, memref<?xf32>
  func.return
}
