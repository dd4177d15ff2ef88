// Softmax of rows of any length and its gradient: the largest and the sum of a row are kept while it is
// read tile by tile, each step with the largest so far; a second pass writes. A block of four warps takes
// a row, which is still in the cache when it is read again.
//
//   fragir run examples/rows/softmax.mlir --entry softmax --size m=40,n=300
//   fragir run examples/rows/softmax.mlir --entry softmax_backward --size m=40,n=300

!part = !frag.tile<1x1024xf32>
!rows = !frag.tile<1xf32>

func.func @softmax(%x: memref<?x?xf32> {frag.sizes = ["m", "n"]},
                   %y: memref<?x?xf32> {frag.sizes = ["m", "n"]})
    attributes {frag.grid = #frag.grid<m>, frag.warps = array<i64: 4, 1>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c1024 = arith.constant 1024 : index
  %lowest = arith.constant -3.40282347e+38 : f32
  %f0 = arith.constant 0.0 : f32
  %infinity = arith.constant 0xff800000 : f32
  %bx = frag.block_id x
  %0 = frag.fill %lowest : !rows
  %1 = frag.fill %f0 : !rows
  %n = memref.dim %x, %c1 : memref<?x?xf32>
  %largest, %total = scf.for %i = %c0 to %n step %c1024
      iter_args(%largest_1 = %0, %total_1 = %1) -> (!rows, !rows) {
    %t = frag.load %x[%bx, %i] masked other %infinity : memref<?x?xf32> -> !part
    %2 = frag.reduce max dim 1 %t : !part -> !rows
    %largest_2 = frag.map %largest_1, %2 : !rows, !rows -> !rows {
    ^bb0(%largest_3: f32, %3: f32):
      %largest_4 = arith.maximumf %largest_3, %3 : f32
      frag.yield %largest_4 : f32
    }
    %4 = frag.broadcast %largest_2 along 1 : !rows -> !part
    %5 = frag.map %t, %4 : !part, !part -> !part {
    ^bb0(%t_1: f32, %6: f32):
      %7 = arith.subf %t_1, %6 : f32
      %8 = math.exp %7 : f32
      frag.yield %8 : f32
    }
    %more = frag.reduce add dim 1 %5 : !part -> !rows
    %total_2 = frag.map %total_1, %largest_1, %largest_2, %more : !rows, !rows, !rows, !rows -> !rows {
    ^bb0(%total_3: f32, %largest_5: f32, %largest_6: f32, %more_1: f32):
      %9 = arith.subf %largest_5, %largest_6 : f32
      %10 = math.exp %9 : f32
      %11 = arith.mulf %total_3, %10 : f32
      %total_4 = arith.addf %11, %more_1 : f32
      frag.yield %total_4 : f32
    }
    scf.yield %largest_2, %total_2 : !rows, !rows
  }
  scf.for %i_1 = %c0 to %n step %c1024 {
    %t_2 = frag.load %x[%bx, %i_1] masked : memref<?x?xf32> -> !part
    %12 = frag.broadcast %largest along 1 : !rows -> !part
    %p = frag.broadcast %total along 1 : !rows -> !part
    %p_1 = frag.map %t_2, %12, %p : !part, !part, !part -> !part {
    ^bb0(%t_3: f32, %13: f32, %p_2: f32):
      %14 = arith.subf %t_3, %13 : f32
      %15 = math.exp %14 : f32
      %p_3 = arith.divf %15, %p_2 : f32
      frag.yield %p_3 : f32
    }
    frag.store %p_1, %y[%bx, %i_1] masked : !part, memref<?x?xf32>
  }
  func.return
}

// dx = y (dy - sum of y dy)
func.func @softmax_backward(%y: memref<?x?xf32> {frag.sizes = ["m", "n"]},
                            %dy: memref<?x?xf32> {frag.sizes = ["m", "n"]},
                            %dx: memref<?x?xf32> {frag.sizes = ["m", "n"]})
    attributes {frag.grid = #frag.grid<m>, frag.warps = array<i64: 4, 1>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c1024 = arith.constant 1024 : index
  %f0 = arith.constant 0.0 : f32
  %bx = frag.block_id x
  %n = memref.dim %y, %c1 : memref<?x?xf32>
  %0 = frag.fill %f0 : !part
  %products = scf.for %i = %c0 to %n step %c1024 iter_args(%products_1 = %0) -> (!part) {
    %p = frag.load %y[%bx, %i] masked : memref<?x?xf32> -> !part
    %g = frag.load %dy[%bx, %i] masked : memref<?x?xf32> -> !part
    %products_2 = frag.map %p, %g, %products_1 : !part, !part, !part -> !part {
    ^bb0(%p_1: f32, %g_1: f32, %products_3: f32):
      %products_4 = math.fma %p_1, %g_1, %products_3 : f32
      frag.yield %products_4 : f32
    }
    scf.yield %products_2 : !part
  }
  %1 = frag.reduce add dim 1 %products : !part -> !rows
  scf.for %i_1 = %c0 to %n step %c1024 {
    %p_2 = frag.load %y[%bx, %i_1] masked : memref<?x?xf32> -> !part
    %g_2 = frag.load %dy[%bx, %i_1] masked : memref<?x?xf32> -> !part
    %2 = frag.broadcast %1 along 1 : !rows -> !part
    %3 = frag.map %p_2, %g_2, %2 : !part, !part, !part -> !part {
    ^bb0(%p_3: f32, %g_3: f32, %4: f32):
      %5 = arith.subf %g_3, %4 : f32
      %6 = arith.mulf %p_3, %5 : f32
      frag.yield %6 : f32
    }
    frag.store %3, %dx[%bx, %i_1] masked : !part, memref<?x?xf32>
  }
  func.return
}
