// Cross entropy of rows of any length: loss = log(sum of exp(x)) - x[target], 0 where the target is
// `ignored`. The largest and the sum of a row are kept while it is read; the target's x is gathered.
//
//   fragir run examples/rows/cross_entropy.mlir --entry cross_entropy --size m=20,n=300 --arg ignored=-100
//   fragir run examples/rows/cross_entropy.mlir --entry cross_entropy_backward --size m=20,n=300

!part = !frag.tile<1x2048xf32>
!read = !frag.tile<1x2048xbf16>
!rows = !frag.tile<1xf32>
!places = !frag.tile<1xi32>
!columns = !frag.tile<1x2048xi32>
!picked = !frag.tile<1xbf16>
!flags = !frag.tile<1xi1>

func.func @cross_entropy(%x: memref<?x?xbf16> {frag.sizes = ["m", "n"]},
                         %targets: memref<?xi32> {frag.sizes = ["m"]},
                         %losses: memref<?xf32> {frag.sizes = ["m"]},
                         %logsums: memref<?xf32> {frag.sizes = ["m"]},
                         %ignored: i32)
    attributes {frag.grid = #frag.grid<m>, frag.warps = array<i64: 4, 1>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2048 = arith.constant 2048 : index
  %lowest = arith.constant -3.40282347e+38 : f32
  %f0 = arith.constant 0.0 : f32
  %infinity16 = arith.constant 0xff80 : bf16
  %bx = frag.block_id x
  %0 = frag.fill %lowest : !rows
  %1 = frag.fill %f0 : !rows
  %n = memref.dim %x, %c1 : memref<?x?xbf16>
  %largest, %total = scf.for %i = %c0 to %n step %c2048
      iter_args(%largest_1 = %0, %total_1 = %1) -> (!rows, !rows) {
    %2 = frag.load %x[%bx, %i] masked other %infinity16 : memref<?x?xbf16> -> !read
    %t = frag.cast %2 : !read -> !part
    %3 = frag.reduce max dim 1 %t : !part -> !rows
    %largest_2 = frag.map %largest_1, %3 : !rows, !rows -> !rows {
    ^bb0(%largest_3: f32, %4: f32):
      %largest_4 = arith.maximumf %largest_3, %4 : f32
      frag.yield %largest_4 : f32
    }
    %5 = frag.broadcast %largest_2 along 1 : !rows -> !part
    %6 = frag.map %t, %5 : !part, !part -> !part {
    ^bb0(%t_1: f32, %7: f32):
      %8 = arith.subf %t_1, %7 : f32
      %9 = math.exp %8 : f32
      frag.yield %9 : f32
    }
    %more = frag.reduce add dim 1 %6 : !part -> !rows
    %total_2 = frag.map %total_1, %largest_1, %largest_2, %more : !rows, !rows, !rows, !rows -> !rows {
    ^bb0(%total_3: f32, %largest_5: f32, %largest_6: f32, %more_1: f32):
      %10 = arith.subf %largest_5, %largest_6 : f32
      %11 = math.exp %10 : f32
      %12 = arith.mulf %total_3, %11 : f32
      %total_4 = arith.addf %12, %more_1 : f32
      frag.yield %total_4 : f32
    }
    scf.yield %largest_2, %total_2 : !rows, !rows
  }
  %target = frag.load %targets[%bx] masked : memref<?xi32> -> !places
  %13 = frag.iota dim 0 : !places
  %14 = arith.index_cast %bx : index to i32
  %bxs = frag.map %13 : !places -> !places {
  ^bb0(%15: i32):
    %bxs_1 = arith.addi %15, %14 : i32
    frag.yield %bxs_1 : i32
  }
  %counts = frag.map %target : !places -> !flags {
  ^bb0(%target_1: i32):
    %counts_1 = arith.cmpi ne, %target_1, %ignored : i32
    frag.yield %counts_1 : i1
  }
  %16 = frag.gather %x[%bxs, %target] masked where %counts
      : memref<?x?xbf16>, !places, !places where !flags -> !picked
  %picked = frag.cast %16 : !picked -> !rows
  %17 = frag.map %largest, %total : !rows, !rows -> !rows {
  ^bb0(%largest_7: f32, %total_5: f32):
    %log = math.log %total_5 : f32
    %18 = arith.addf %largest_7, %log : f32
    frag.yield %18 : f32
  }
  frag.store %17, %logsums[%bx] masked : !rows, memref<?xf32>
  %loss = frag.map %counts, %total, %largest, %picked : !flags, !rows, !rows, !rows -> !rows {
  ^bb0(%counts_2: i1, %total_6: f32, %largest_8: f32, %picked_1: f32):
    %log_1 = math.log %total_6 : f32
    %19 = arith.subf %largest_8, %picked_1 : f32
    %20 = arith.addf %log_1, %19 : f32
    %loss_1 = arith.select %counts_2, %20, %f0 : f32
    frag.yield %loss_1 : f32
  }
  frag.store %loss, %losses[%bx] masked : !rows, memref<?xf32>
  func.return
}

// dx = (exp(x - logsum) - (column is target)) dloss
func.func @cross_entropy_backward(%x: memref<?x?xbf16> {frag.sizes = ["m", "n"]},
                                  %targets: memref<?xi32> {frag.sizes = ["m"]},
                                  %logsums: memref<?xf32> {frag.sizes = ["m"]},
                                  %dlosses: memref<?xf32> {frag.sizes = ["m"]},
                                  %dx: memref<?x?xbf16> {frag.sizes = ["m", "n"]},
                                  %ignored: i32)
    attributes {frag.grid = #frag.grid<n by 2048, m>, frag.warps = array<i64: 4, 1>} {
  %c1 = arith.constant 1 : index
  %c2048 = arith.constant 2048 : index
  %f0 = arith.constant 0.0 : f32
  %f1 = arith.constant 1.0 : f32
  %by = frag.block_id y
  %0 = arith.muli %by, %c1 : index
  %bx = frag.block_id x
  %1 = arith.muli %bx, %c2048 : index
  %target = frag.load %targets[%0] masked : memref<?xi32> -> !places
  %logsum = frag.load %logsums[%0] masked : memref<?xf32> -> !rows
  %dloss = frag.load %dlosses[%0] masked : memref<?xf32> -> !rows
  %2 = frag.map %target, %dloss : !places, !rows -> !rows {
  ^bb0(%target_1: i32, %dloss_1: f32):
    %3 = arith.cmpi eq, %target_1, %ignored : i32
    %4 = arith.select %3, %f0, %dloss_1 : f32
    frag.yield %4 : f32
  }
  %5 = frag.load %x[%0, %1] masked : memref<?x?xbf16> -> !read
  %t = frag.cast %5 : !read -> !part
  %6 = frag.broadcast %logsum along 1 : !rows -> !part
  %7 = frag.iota dim 1 : !columns
  %8 = arith.index_cast %1 : index to i32
  %here = frag.broadcast %target along 1 : !places -> !columns
  %r = frag.broadcast %2 along 1 : !rows -> !part
  %r_1 = frag.map %7, %here, %t, %6, %r : !columns, !columns, !part, !part, !part -> !part {
  ^bb0(%9: i32, %here_1: i32, %t_1: f32, %10: f32, %r_2: f32):
    %11 = arith.addi %9, %8 : i32
    %here_2 = arith.cmpi eq, %11, %here_1 : i32
    %12 = arith.subf %t_1, %10 : f32
    %p = math.exp %12 : f32
    %13 = arith.subf %p, %f1 : f32
    %14 = arith.select %here_2, %13, %p : f32
    %r_3 = arith.mulf %14, %r_2 : f32
    frag.yield %r_3 : f32
  }
  %15 = frag.cast %r_1 : !part -> !read
  frag.store %15, %dx[%0, %1] masked : !read, memref<?x?xbf16>
  func.return
}
