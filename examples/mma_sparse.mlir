// One warp, one instruction, half of A left out: of every four elements of a row of A two are kept,
// and metadata (a nibble for every four) say which. `fragir run` makes legal metadata.
//
//   fragir run examples/mma_sparse.mlir --entry f16
//   fragir compile examples/mma_sparse.mlir --entry s8 --target sm_90

!f16a = !frag.tile<16x16xf16>
!f16b = !frag.tile<32x8xf16>
!f32c = !frag.tile<16x8xf32>

// m16n8k32: A has 16 packed columns of K = 32
func.func @f16(%a: memref<16x16xf16>, %e: memref<16x8xui4>, %b: memref<32x8xf16>, %c: memref<16x8xf32>, %d: memref<16x8xf32>) {
  %0 = frag.load %a[0, 0] : memref<16x16xf16> -> !f16a
  %1 = frag.load %b[0, 0] : memref<32x8xf16> -> !f16b
  %2 = frag.load %c[0, 0] : memref<16x8xf32> -> !f32c
  %3 = frag.load %e[0, 0] : memref<16x8xui4> -> !frag.tile<16x8xui4>
  %4 = frag.mma_sparse %0, %1, %2, %3 : !f16a, !f16b, !f32c, !frag.tile<16x8xui4> -> !f32c
  frag.store %4, %d[0, 0] : !f32c, memref<16x8xf32>
  func.return
}

!s8a = !frag.tile<16x32xsi8>
!s8b = !frag.tile<64x8xsi8>
!s32c = !frag.tile<16x8xi32>

// m16n8k64; sums that leave i32 stop at its ends
func.func @s8(%a: memref<16x32xsi8>, %e: memref<16x16xui4>, %b: memref<8x64xsi8>, %c: memref<16x8xi32>, %d: memref<16x8xi32>) {
  %0 = frag.load %a[0, 0] : memref<16x32xsi8> -> !s8a
  %1 = frag.load %b[0, 0] transposed : memref<8x64xsi8> -> !s8b
  %2 = frag.load %c[0, 0] : memref<16x8xi32> -> !s32c
  %3 = frag.load %e[0, 0] : memref<16x16xui4> -> !frag.tile<16x16xui4>
  %4 = frag.mma_sparse %0, %1, %2, %3 satfinite : !s8a, !s8b, !s32c, !frag.tile<16x16xui4> -> !s32c
  frag.store %4, %d[0, 0] : !s32c, memref<16x8xi32>
  func.return
}
