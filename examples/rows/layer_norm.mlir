// Layer norm of rows of any length: y = (x - mean) / sqrt(variance + eps) * gamma + beta. Three passes
// over a row: its sum, the sum of squares of what is left without the mean, the result.
//
//   fragir run examples/rows/layer_norm.mlir --size m=20,n=300 --arg eps=1e-5

!part = !frag.tile<8x256xf32>
!read = !frag.tile<8x256xf16>
!rows = !frag.tile<8xf32>
!columns = !frag.tile<256xf32>

func.func @layer_norm(%x: memref<?x?xf16> {frag.sizes = ["m", "n"]},
                      %gamma: memref<?xf32> {frag.sizes = ["n"]},
                      %beta: memref<?xf32> {frag.sizes = ["n"]},
                      %y: memref<?x?xf16> {frag.sizes = ["m", "n"]}, %eps: f32)
    attributes {frag.grid = #frag.grid<m by 8>, frag.warps = array<i64: 4, 1>} {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %8 = arith.constant 8 : index
  %256 = arith.constant 256 : index
  %n = memref.dim %x, %1 : memref<?x?xf16>
  %columns = arith.index_cast %n : index to i32
  %count = arith.sitofp %columns : i32 to f32
  %b = frag.block_id x
  %row = arith.muli %b, %8 : index
  %zero = arith.constant 0.0 : f32
  %none = frag.fill %zero : !part
  %sums = scf.for %j = %0 to %n step %256 iter_args(%s = %none) -> (!part) {
    %in = frag.load %x[%row, %j] masked : memref<?x?xf16> -> !read
    %t = frag.cast %in : !read -> !part
    %more = frag.map %s, %t : !part, !part -> !part {
    ^bb0(%u: f32, %v: f32):
      %r = arith.addf %u, %v : f32
      frag.yield %r : f32
    }
    scf.yield %more : !part
  }
  %total = frag.reduce add dim 1 %sums : !part -> !rows
  %mean = frag.map %total : !rows -> !rows {
  ^bb0(%u: f32):
    %r = arith.divf %u, %count : f32
    frag.yield %r : f32
  }
  %means = frag.broadcast %mean along 1 : !rows -> !part
  %place = frag.iota dim 1 : !frag.tile<8x256xi32>
  %squares = scf.for %j = %0 to %n step %256 iter_args(%s = %none) -> (!part) {
    %in = frag.load %x[%row, %j] masked : memref<?x?xf16> -> !read
    %t = frag.cast %in : !read -> !part
    %at = arith.index_cast %j : index to i32
    %left = arith.subi %columns, %at : i32
    %more = frag.map %s, %t, %means, %place : !part, !part, !part, !frag.tile<8x256xi32> -> !part {
    ^bb0(%u: f32, %v: f32, %m: f32, %i: i32):
      %d = arith.subf %v, %m : f32
      %q = math.fma %d, %d, %u : f32
      %inside = arith.cmpi slt, %i, %left : i32
      %r = arith.select %inside, %q, %u : f32
      frag.yield %r : f32
    }
    scf.yield %more : !part
  }
  %spread = frag.reduce add dim 1 %squares : !part -> !rows
  %scale = frag.map %spread : !rows -> !rows {
  ^bb0(%u: f32):
    %v = arith.divf %u, %count : f32
    %w = arith.addf %v, %eps : f32
    %r = math.rsqrt %w : f32
    frag.yield %r : f32
  }
  %scales = frag.broadcast %scale along 1 : !rows -> !part
  scf.for %j = %0 to %n step %256 {
    %in = frag.load %x[%row, %j] masked : memref<?x?xf16> -> !read
    %t = frag.cast %in : !read -> !part
    %g = frag.load %gamma[%j] masked : memref<?xf32> -> !columns
    %h = frag.load %beta[%j] masked : memref<?xf32> -> !columns
    %gt = frag.broadcast %g along 0 : !columns -> !part
    %ht = frag.broadcast %h along 0 : !columns -> !part
    %r = frag.map %t, %means, %scales, %gt, %ht : !part, !part, !part, !part, !part -> !part {
    ^bb0(%v: f32, %m: f32, %f: f32, %u: f32, %w: f32):
      %d = arith.subf %v, %m : f32
      %e = arith.mulf %d, %f : f32
      %q = math.fma %e, %u, %w : f32
      frag.yield %q : f32
    }
    %out = frag.cast %r : !part -> !read
    frag.store %out, %y[%row, %j] masked : !read, memref<?x?xf16>
  }
  func.return
}
