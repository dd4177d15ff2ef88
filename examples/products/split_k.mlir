// A product whose K is divided among blocks. `split_k` adds the parts to C by atomics, in whichever order;
// `split_k_parts` and `split_k_total` take two passes, with the same sum in every launch.
//
//   fragir run examples/products/split_k.mlir --entry split_k --size m=50,n=70,k=300
//   fragir run examples/products/split_k.mlir --entry split_k_parts --size m=50,n=70,k=300,s=3
//   fragir run examples/products/split_k.mlir --entry split_k_total --size m=50,n=70,s=3

!sums = !frag.tile<64x64xf32>
!part = !frag.tile<16x64xf32>

func.func @split_k(%a: memref<?x?xf16> {frag.sizes = ["m", "k"]},
                   %b: memref<?x?xf16> {frag.sizes = ["k", "n"]},
                   %c: memref<?x?xf32> {frag.sizes = ["m", "n"]})
    attributes {frag.warps = array<i64: 2, 2>, frag.grid = #frag.grid<n by 64, m by 64, 4>} {
  %by = frag.block_id y
  %0 = arith.constant 64 : index
  %1 = arith.muli %by, %0 : index
  %bx = frag.block_id x
  %2 = arith.muli %bx, %0 : index
  %bz = frag.block_id z
  %3 = arith.constant 32 : index
  %4 = arith.muli %bz, %3 : index
  %a_tile = memref.alloc() : memref<2x64x32xf16, #frag.shared<swizzle = 64>>
  %b_tile = memref.alloc() : memref<2x32x64xf16, #frag.shared<swizzle = 128>>
  frag.copy async %a[%1, %4] to %a_tile[0] masked : memref<?x?xf16> to memref<2x64x32xf16, #frag.shared<swizzle = 64>>
  frag.copy async %b[%4, %2] to %b_tile[0] masked : memref<?x?xf16> to memref<2x32x64xf16, #frag.shared<swizzle = 128>>
  frag.commit
  %5 = arith.constant 1 : index
  %k = memref.dim %a, %5 : memref<?x?xf16>
  %6 = arith.constant 0.000000e+00 : f32
  %7 = frag.fill %6 : !sums
  %8 = arith.constant 0 : index
  %9 = arith.constant 128 : index
  %acc, %stage = scf.for %i = %4 to %k step %9 iter_args(%acc_1 = %7, %stage_1 = %8) -> (!sums, index) {
    frag.wait 0
    frag.barrier
    %10 = arith.subi %5, %stage_1 : index
    %11 = arith.addi %i, %9 : index
    frag.copy async %a[%1, %11] to %a_tile[%10] masked : memref<?x?xf16> to memref<2x64x32xf16, #frag.shared<swizzle = 64>>
    frag.copy async %b[%11, %2] to %b_tile[%10] masked : memref<?x?xf16> to memref<2x32x64xf16, #frag.shared<swizzle = 128>>
    frag.commit
    %x = frag.load %a_tile[%stage_1, 0, 0] : memref<2x64x32xf16, #frag.shared<swizzle = 64>> -> !frag.tile<64x32xf16>
    %y = frag.load %b_tile[%stage_1, 0, 0] : memref<2x32x64xf16, #frag.shared<swizzle = 128>> -> !frag.tile<32x64xf16>
    %acc_2 = frag.mma %x, %y, %acc_1 : !frag.tile<64x32xf16>, !frag.tile<32x64xf16>, !sums -> !sums
    %stage_2 = arith.subi %5, %stage_1 : index
    scf.yield %acc_2, %stage_2 : !sums, index
  }
  frag.wait 0
  frag.atomic add %acc, %c[%1, %2] masked : !sums, memref<?x?xf32>, index, index
  func.return
}

func.func @split_k_parts(%a: memref<?x?xf16> {frag.sizes = ["m", "k"]},
                         %b: memref<?x?xf16> {frag.sizes = ["k", "n"]},
                         %p: memref<?x?x?xf32> {frag.sizes = ["s", "m", "n"]})
    attributes {frag.warps = array<i64: 2, 2>, frag.grid = #frag.grid<n by 64, m by 64, s>} {
  %by = frag.block_id y
  %0 = arith.constant 64 : index
  %1 = arith.muli %by, %0 : index
  %bx = frag.block_id x
  %2 = arith.muli %bx, %0 : index
  %bz = frag.block_id z
  %3 = arith.constant 32 : index
  %4 = arith.muli %bz, %3 : index
  %5 = arith.constant 0 : index
  %s = memref.dim %p, %5 : memref<?x?x?xf32>
  %6 = arith.muli %s, %3 : index
  %a_tile = memref.alloc() : memref<2x64x32xf16, #frag.shared<swizzle = 64>>
  %b_tile = memref.alloc() : memref<2x32x64xf16, #frag.shared<swizzle = 128>>
  frag.copy async %a[%1, %4] to %a_tile[0] masked : memref<?x?xf16> to memref<2x64x32xf16, #frag.shared<swizzle = 64>>
  frag.copy async %b[%4, %2] to %b_tile[0] masked : memref<?x?xf16> to memref<2x32x64xf16, #frag.shared<swizzle = 128>>
  frag.commit
  %7 = arith.constant 1 : index
  %k = memref.dim %a, %7 : memref<?x?xf16>
  %8 = arith.constant 0.000000e+00 : f32
  %9 = frag.fill %8 : !sums
  %acc, %stage = scf.for %i = %4 to %k step %6 iter_args(%acc_1 = %9, %stage_1 = %5) -> (!sums, index) {
    frag.wait 0
    frag.barrier
    %10 = arith.subi %7, %stage_1 : index
    %11 = arith.addi %i, %6 : index
    frag.copy async %a[%1, %11] to %a_tile[%10] masked : memref<?x?xf16> to memref<2x64x32xf16, #frag.shared<swizzle = 64>>
    frag.copy async %b[%11, %2] to %b_tile[%10] masked : memref<?x?xf16> to memref<2x32x64xf16, #frag.shared<swizzle = 128>>
    frag.commit
    %x = frag.load %a_tile[%stage_1, 0, 0] : memref<2x64x32xf16, #frag.shared<swizzle = 64>> -> !frag.tile<64x32xf16>
    %y = frag.load %b_tile[%stage_1, 0, 0] : memref<2x32x64xf16, #frag.shared<swizzle = 128>> -> !frag.tile<32x64xf16>
    %acc_2 = frag.mma %x, %y, %acc_1 : !frag.tile<64x32xf16>, !frag.tile<32x64xf16>, !sums -> !sums
    %stage_2 = arith.subi %7, %stage_1 : index
    scf.yield %acc_2, %stage_2 : !sums, index
  }
  frag.wait 0
  frag.store %acc, %p[%bz, %1, %2] masked : !sums, memref<?x?x?xf32>
  func.return
}

func.func @split_k_total(%p: memref<?x?x?xf32> {frag.sizes = ["s", "m", "n"]},
                         %c: memref<?x?xf32> {frag.sizes = ["m", "n"]})
    attributes {frag.warps = array<i64: 4, 1>, frag.grid = #frag.grid<n by 64, m by 16>} {
  %by = frag.block_id y
  %0 = arith.constant 16 : index
  %1 = arith.muli %by, %0 : index
  %bx = frag.block_id x
  %2 = arith.constant 64 : index
  %3 = arith.muli %bx, %2 : index
  %4 = arith.constant 0 : index
  %s = memref.dim %p, %4 : memref<?x?x?xf32>
  %5 = arith.constant 0.000000e+00 : f32
  %6 = frag.fill %5 : !part
  %7 = arith.constant 1 : index
  %acc = scf.for %i = %4 to %s step %7 iter_args(%acc_1 = %6) -> (!part) {
    %8 = frag.load %p[%i, %1, %3] masked : memref<?x?x?xf32> -> !part
    %9 = frag.map %acc_1, %8 : !part, !part -> !part {
    ^bb0(%acc_2: f32, %10: f32):
      %11 = arith.addf %acc_2, %10 : f32
      frag.yield %11 : f32
    }
    scf.yield %9 : !part
  }
  frag.store %acc, %c[%1, %3] masked : !part, memref<?x?xf32>
  func.return
}
