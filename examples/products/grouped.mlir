// Rows in groups of any length, each group times its own matrix (experts of a mixture). Group g has the rows
// starts[g] up to, not with, ends[g], read from memory; a group may be empty. Blocks behind a group's end do
// nothing, and rows of the next group are not written: frag.scatter with a condition for each row.
// `fragir run` takes the groups from files: --size m=9,n=5,k=6,g=3 --arg starts=starts.npy --arg ends=ends.npy
//
//   fragir compile examples/products/grouped.mlir --target sm_80

!sums = !frag.tile<64x64xf32>

func.func @grouped(%a: memref<?x?xf16> {frag.sizes = ["m", "k"]},
                   %b: memref<?x?x?xf16> {frag.sizes = ["g", "k", "n"]},
                   %starts: memref<?xi32> {frag.sizes = ["g"]},
                   %ends: memref<?xi32> {frag.sizes = ["g"]},
                   %c: memref<?x?xf32> {frag.sizes = ["m", "n"]})
    attributes {frag.warps = array<i64: 2, 2>, frag.grid = #frag.grid<n by 64, m by 64, g>} {
  %bz = frag.block_id z
  %bx = frag.block_id x
  %0 = arith.constant 64 : index
  %1 = arith.muli %bx, %0 : index
  %end = memref.load %ends[%bz] : memref<?xi32>
  %2 = memref.load %starts[%bz] : memref<?xi32>
  %3 = arith.index_cast %2 : i32 to index
  %by = frag.block_id y
  %4 = arith.muli %by, %0 : index
  %row = arith.addi %3, %4 : index
  %a_tile = memref.alloc() : memref<2x64x32xf16, #frag.shared<swizzle = 64>>
  %b_tile = memref.alloc() : memref<2x32x64xf16, #frag.shared<swizzle = 128>>
  %5 = arith.index_cast %end : i32 to index
  %6 = arith.cmpi slt, %row, %5 : index
  scf.if %6 {
    frag.copy async %a[%row, 0] to %a_tile[0] masked : memref<?x?xf16> to memref<2x64x32xf16, #frag.shared<swizzle = 64>>
    frag.copy async %b[%bz, 0, %1] to %b_tile[0] masked : memref<?x?x?xf16> to memref<2x32x64xf16, #frag.shared<swizzle = 128>>
    frag.commit
    %7 = arith.constant 1 : index
    %k = memref.dim %a, %7 : memref<?x?xf16>
    %8 = arith.constant 0.000000e+00 : f32
    %9 = frag.fill %8 : !sums
    %10 = arith.constant 0 : index
    %11 = arith.constant 32 : index
    %acc, %stage = scf.for %i = %10 to %k step %11 iter_args(%acc_1 = %9, %stage_1 = %10) -> (!sums, index) {
      frag.wait 0
      frag.barrier
      %12 = arith.subi %7, %stage_1 : index
      %13 = arith.addi %i, %11 : index
      frag.copy async %a[%row, %13] to %a_tile[%12] masked : memref<?x?xf16> to memref<2x64x32xf16, #frag.shared<swizzle = 64>>
      frag.copy async %b[%bz, %13, %1] to %b_tile[%12] masked : memref<?x?x?xf16> to memref<2x32x64xf16, #frag.shared<swizzle = 128>>
      frag.commit
      %x = frag.load %a_tile[%stage_1, 0, 0] : memref<2x64x32xf16, #frag.shared<swizzle = 64>> -> !frag.tile<64x32xf16>
      %y = frag.load %b_tile[%stage_1, 0, 0] : memref<2x32x64xf16, #frag.shared<swizzle = 128>> -> !frag.tile<32x64xf16>
      %acc_2 = frag.mma %x, %y, %acc_1 : !frag.tile<64x32xf16>, !frag.tile<32x64xf16>, !sums -> !sums
      %stage_2 = arith.subi %7, %stage_1 : index
      scf.yield %acc_2, %stage_2 : !sums, index
    }
    frag.wait 0
    %14 = frag.iota dim 0 : !frag.tile<64xi32>
    %15 = arith.index_cast %row : index to i32
    %rows = frag.map %14 : !frag.tile<64xi32> -> !frag.tile<64xi32> {
    ^bb0(%16: i32):
      %rows_1 = arith.addi %16, %15 : i32
      frag.yield %rows_1 : i32
    }
    %17 = frag.map %rows : !frag.tile<64xi32> -> !frag.tile<64xi1> {
    ^bb0(%rows_2: i32):
      %18 = arith.cmpi slt, %rows_2, %end : i32
      frag.yield %18 : i1
    }
    frag.scatter %acc, %c[%rows, %1] masked where %17 : !sums, memref<?x?xf32>, !frag.tile<64xi32>, index where !frag.tile<64xi1>
  }
  func.return
}
