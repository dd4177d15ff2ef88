// Softmax of rows of any length: the largest and the sum of a row are kept while it is read tile by
// tile, each step with the largest so far; a second pass writes. A block of four warps takes 16 rows.
//
//   fragir run examples/rows/softmax.mlir --size m=40,n=300

!part = !frag.tile<16x128xf32>
!rows = !frag.tile<16xf32>

func.func @softmax(%x: memref<?x?xf32> {frag.sizes = ["m", "n"]},
                   %y: memref<?x?xf32> {frag.sizes = ["m", "n"]})
    attributes {frag.grid = #frag.grid<m by 16>, frag.warps = array<i64: 4, 1>} {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %16 = arith.constant 16 : index
  %128 = arith.constant 128 : index
  %n = memref.dim %x, %1 : memref<?x?xf32>
  %b = frag.block_id x
  %row = arith.muli %b, %16 : index
  %least = arith.constant -1.0e30 : f32
  %zero = arith.constant 0.0 : f32
  %m0 = frag.fill %least : !rows
  %s0 = frag.fill %zero : !rows
  %m, %s = scf.for %j = %0 to %n step %128 iter_args(%m1 = %m0, %s1 = %s0) -> (!rows, !rows) {
    %t = frag.load %x[%row, %j] masked other %least : memref<?x?xf32> -> !part
    %in_tile = frag.reduce max dim 1 %t : !part -> !rows
    %m2 = frag.map %m1, %in_tile : !rows, !rows -> !rows {
    ^bb0(%u: f32, %v: f32):
      %r = arith.maximumf %u, %v : f32
      frag.yield %r : f32
    }
    %mt = frag.broadcast %m2 along 1 : !rows -> !part
    %e = frag.map %t, %mt : !part, !part -> !part {
    ^bb0(%v: f32, %largest: f32):
      %d = arith.subf %v, %largest : f32
      %r = math.exp %d : f32
      frag.yield %r : f32
    }
    %sum = frag.reduce add dim 1 %e : !part -> !rows
    %s2 = frag.map %s1, %m1, %m2, %sum : !rows, !rows, !rows, !rows -> !rows {
    ^bb0(%old: f32, %before: f32, %now: f32, %more: f32):
      %d = arith.subf %before, %now : f32
      %f = math.exp %d : f32
      %r = math.fma %old, %f, %more : f32
      frag.yield %r : f32
    }
    scf.yield %m2, %s2 : !rows, !rows
  }
  scf.for %j = %0 to %n step %128 {
    %t = frag.load %x[%row, %j] masked : memref<?x?xf32> -> !part
    %mt = frag.broadcast %m along 1 : !rows -> !part
    %st = frag.broadcast %s along 1 : !rows -> !part
    %p = frag.map %t, %mt, %st : !part, !part, !part -> !part {
    ^bb0(%v: f32, %largest: f32, %sum: f32):
      %d = arith.subf %v, %largest : f32
      %e = math.exp %d : f32
      %r = arith.divf %e, %sum : f32
      frag.yield %r : f32
    }
    frag.store %p, %y[%row, %j] masked : !part, memref<?x?xf32>
  }
  func.return
}
