// C = relu(A B + bias), written by hand in `frag`: what `fragir-opt -p frag-tile` would make of a
// frag.matmul, with names and comments. Any M, N and K: row-major f16 in, f32 sums, f16 out, one
// bias a column.
//
// A block of four warps computes 128x128 of C. Three stages of A (128x32) and B (32x128) are under
// way from global to shared memory: cp.async fills one while ldmatrix and mma read another. `masked`
// copies write zeros beyond the edges of A and B, so that the loop needs no special last round, and
// the masked store leaves out what is beyond C's.
//
//   fragir run examples/gemm_frag.mlir --size m=250,n=130,k=77
//   fragir compile examples/gemm_frag.mlir --to placed

!a = !frag.tile<128x32xf16>
!b = !frag.tile<32x128xf16>
!acc = !frag.tile<128x128xf32>
!row = !frag.tile<128x128xf16>
#grid = #frag.grid<n by 128, m by 128>

func.func @gemm_frag(%a: memref<?x?xf16> {frag.sizes = ["m", "k"]},
                     %b: memref<?x?xf16> {frag.sizes = ["k", "n"]},
                     %bias: memref<?xf16> {frag.sizes = ["n"]},
                     %c: memref<?x?xf16> {frag.sizes = ["m", "n"]})
    attributes {frag.grid = #grid, frag.warps = array<i64: 2, 2>} {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %2 = arith.constant 2 : index
  %32 = arith.constant 32 : index
  %64 = arith.constant 64 : index
  %128 = arith.constant 128 : index
  %k = memref.dim %a, %1 : memref<?x?xf16>

  // this block's corner of C
  %bx = frag.block_id x
  %by = frag.block_id y
  %col = arith.muli %bx, %128 : index
  %row = arith.muli %by, %128 : index

  // three stages each; rows of A are 64 bytes, rows of B 256, cut into panels of 128
  %sa = memref.alloc() : memref<3x128x32xf16, #frag.shared<swizzle = 64>>
  %sb = memref.alloc() : memref<3x32x128xf16, #frag.shared<swizzle = 128>>

  // the first two stages start to arrive, one group of copies a stage
  frag.copy async %a[%row, 0] to %sa[0] masked : memref<?x?xf16> to memref<3x128x32xf16, #frag.shared<swizzle = 64>>
  frag.copy async %b[0, %col] to %sb[0] masked : memref<?x?xf16> to memref<3x32x128xf16, #frag.shared<swizzle = 128>>
  frag.commit
  frag.copy async %a[%row, 32] to %sa[1] masked : memref<?x?xf16> to memref<3x128x32xf16, #frag.shared<swizzle = 64>>
  frag.copy async %b[32, %col] to %sb[1] masked : memref<?x?xf16> to memref<3x32x128xf16, #frag.shared<swizzle = 128>>
  frag.commit

  %zero = arith.constant 0.0 : f32
  %start = frag.fill %zero : !acc
  %total, %last = scf.for %k0 = %0 to %k step %32 iter_args(%acc = %start, %stage = %0) -> (!acc, index) {
    // all but the newest group are here, for every thread
    frag.wait 1
    frag.barrier

    // refill the stage that was read in the last round: (stage + 2) mod 3
    %ahead = arith.addi %k0, %64 : index
    %more = arith.cmpi slt, %ahead, %k : index
    %first = arith.cmpi eq, %stage, %0 : index
    %before = arith.subi %stage, %1 : index
    %slot = arith.select %first, %2, %before : index
    scf.if %more {
      frag.copy async %a[%row, %ahead] to %sa[%slot] masked : memref<?x?xf16> to memref<3x128x32xf16, #frag.shared<swizzle = 64>>
      frag.copy async %b[%ahead, %col] to %sb[%slot] masked : memref<?x?xf16> to memref<3x32x128xf16, #frag.shared<swizzle = 128>>
    }
    // an empty group at the end keeps the count of groups the same in every round
    frag.commit

    %ta = frag.load %sa[%stage, 0, 0] : memref<3x128x32xf16, #frag.shared<swizzle = 64>> -> !a
    %tb = frag.load %sb[%stage, 0, 0] : memref<3x32x128xf16, #frag.shared<swizzle = 128>> -> !b
    %sum = frag.mma %ta, %tb, %acc : !a, !b, !acc -> !acc

    %at_end = arith.cmpi eq, %stage, %2 : index
    %after = arith.addi %stage, %1 : index
    %next = arith.select %at_end, %0, %after : index
    scf.yield %sum, %next : !acc, index
  }

  // bias and activation in registers, then rounded and stored
  %biases = frag.load %bias[%col] masked broadcast : memref<?xf16> -> !row
  %result = frag.map %total, %biases : !acc, !row -> !row {
  ^bb0(%x: f32, %b16: f16):
    %b32 = arith.extf %b16 : f16 to f32
    %biased = arith.addf %x, %b32 : f32
    %none = arith.constant 0.0 : f32
    %active = arith.maximumf %biased, %none : f32
    %rounded = arith.truncf %active : f32 to f16
    frag.yield %rounded : f16
  }
  frag.store %result, %c[%row, %col] masked : !row, memref<?x?xf16>
  func.return
}
