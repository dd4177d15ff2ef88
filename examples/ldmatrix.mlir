// Fragments from shared memory by ldmatrix: one instruction gives a lane up to four registers, where
// plain loads would need one each.
//
// @swizzled: A and B are copied into shared memory whose rows are swizzled (bits 4.. of the address
// XORed with bits 7..), so that the eight rows that ldmatrix reads at once lie in different banks.
// A's layout is that of ldmatrix; B (K x N, row after row) needs ldmatrix.trans.
// @transposed: memory holds A as K x M and B as N x K. Now A needs .trans and B does not.
// Nothing has to be said about either: the compiler picks ldmatrix where layout and alignment fit.
//
//   fragir run examples/ldmatrix.mlir --entry swizzled
//   fragir compile examples/ldmatrix.mlir --entry transposed | grep ldmatrix

!a = !frag.tile<64x64xf16>
!b = !frag.tile<64x64xf16>
!c = !frag.tile<64x64xf32>

func.func @swizzled(%a: memref<64x64xf16>, %b: memref<64x64xf16>, %c: memref<64x64xf32>) attributes {frag.warps = array<i64: 2, 2>} {
  %sa = memref.alloc() : memref<64x64xf16, #frag.shared<swizzle = 128>>
  %sb = memref.alloc() : memref<64x64xf16, #frag.shared<swizzle = 64>>
  frag.copy %a[0, 0] to %sa[] : memref<64x64xf16> to memref<64x64xf16, #frag.shared<swizzle = 128>>
  frag.copy %b[0, 0] to %sb[] : memref<64x64xf16> to memref<64x64xf16, #frag.shared<swizzle = 64>>
  frag.barrier
  %0 = frag.load %sa[0, 0] : memref<64x64xf16, #frag.shared<swizzle = 128>> -> !a
  %1 = frag.load %sb[0, 0] : memref<64x64xf16, #frag.shared<swizzle = 64>> -> !b
  %zero = arith.constant 0.0 : f32
  %2 = frag.fill %zero : !c
  %3 = frag.mma %0, %1, %2 : !a, !b, !c -> !c
  frag.store %3, %c[0, 0] : !c, memref<64x64xf32>
  func.return
}

func.func @transposed(%a: memref<64x64xf16>, %b: memref<64x64xf16>, %c: memref<64x64xf32>) attributes {frag.warps = array<i64: 2, 2>} {
  %sa = memref.alloc() : memref<64x64xf16, #frag.shared<swizzle = 128>>
  %sb = memref.alloc() : memref<64x64xf16, #frag.shared<swizzle = 32>>
  frag.copy %a[0, 0] to %sa[] : memref<64x64xf16> to memref<64x64xf16, #frag.shared<swizzle = 128>>
  frag.copy %b[0, 0] to %sb[] : memref<64x64xf16> to memref<64x64xf16, #frag.shared<swizzle = 32>>
  frag.barrier
  %0 = frag.load %sa[0, 0] transposed : memref<64x64xf16, #frag.shared<swizzle = 128>> -> !a
  %1 = frag.load %sb[0, 0] transposed : memref<64x64xf16, #frag.shared<swizzle = 32>> -> !b
  %zero = arith.constant 0.0 : f32
  %2 = frag.fill %zero : !c
  %3 = frag.mma %0, %1, %2 : !a, !b, !c -> !c
  frag.store %3, %c[0, 0] : !c, memref<64x64xf32>
  func.return
}
