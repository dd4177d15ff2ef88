// C[i] = A[i] B[i] for every i of a batch, of any sizes: the grid's z is the first index of every array. bf16
// in memory, f32 sums; two stages of A and B in swizzled shared memory, filled by cp.async.
//
//   fragir run examples/products/batched.mlir --size b=3,m=70,n=77,k=45

!sums = !frag.tile<64x64xf32>

func.func @batched(%a: memref<?x?x?xbf16> {frag.sizes = ["b", "m", "k"]},
                   %b: memref<?x?x?xbf16> {frag.sizes = ["b", "k", "n"]},
                   %c: memref<?x?x?xf32> {frag.sizes = ["b", "m", "n"]})
    attributes {frag.warps = array<i64: 2, 2>, frag.grid = #frag.grid<n by 64, m by 64, b>} {
  %bz = frag.block_id z
  %0 = arith.constant 2 : index
  %k = memref.dim %a, %0 : memref<?x?x?xbf16>
  %by = frag.block_id y
  %1 = arith.constant 64 : index
  %2 = arith.muli %by, %1 : index
  %bx = frag.block_id x
  %3 = arith.muli %bx, %1 : index
  %a_tile = memref.alloc() : memref<2x64x32xbf16, #frag.shared<swizzle = 64>>
  %b_tile = memref.alloc() : memref<2x32x64xbf16, #frag.shared<swizzle = 128>>
  frag.copy async %a[%bz, %2, 0] to %a_tile[0] masked : memref<?x?x?xbf16> to memref<2x64x32xbf16, #frag.shared<swizzle = 64>>
  frag.copy async %b[%bz, 0, %3] to %b_tile[0] masked : memref<?x?x?xbf16> to memref<2x32x64xbf16, #frag.shared<swizzle = 128>>
  frag.commit
  %4 = arith.constant 0.000000e+00 : f32
  %5 = frag.fill %4 : !sums
  %6 = arith.constant 0 : index
  %7 = arith.constant 32 : index
  %acc, %stage = scf.for %i = %6 to %k step %7 iter_args(%acc_1 = %5, %stage_1 = %6) -> (!sums, index) {
    frag.wait 0
    frag.barrier
    %8 = arith.constant 1 : index
    %9 = arith.subi %8, %stage_1 : index
    %10 = arith.addi %i, %7 : index
    frag.copy async %a[%bz, %2, %10] to %a_tile[%9] masked : memref<?x?x?xbf16> to memref<2x64x32xbf16, #frag.shared<swizzle = 64>>
    frag.copy async %b[%bz, %10, %3] to %b_tile[%9] masked : memref<?x?x?xbf16> to memref<2x32x64xbf16, #frag.shared<swizzle = 128>>
    frag.commit
    %x = frag.load %a_tile[%stage_1, 0, 0] : memref<2x64x32xbf16, #frag.shared<swizzle = 64>> -> !frag.tile<64x32xbf16>
    %y = frag.load %b_tile[%stage_1, 0, 0] : memref<2x32x64xbf16, #frag.shared<swizzle = 128>> -> !frag.tile<32x64xbf16>
    %acc_2 = frag.mma %x, %y, %acc_1 : !frag.tile<64x32xbf16>, !frag.tile<32x64xbf16>, !sums -> !sums
    %stage_2 = arith.subi %8, %stage_1 : index
    scf.yield %acc_2, %stage_2 : !sums, index
  }
  frag.wait 0
  frag.store %acc, %c[%bz, %2, %3] masked : !sums, memref<?x?x?xf32>
  func.return
}
