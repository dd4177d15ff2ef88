// One warp, one instruction with block scales (sm_120a): a scale for every 32 or 16 elements along K.
//
//   fragir run examples/mma_block_scaled.mlir --entry mxf8 --target sm_120a
//   fragir run examples/mma_block_scaled.mlir --entry nvf4 --target sm_120a

!sum = !frag.tile<16x8xf32>

// 8-bit by 4-bit floats, both a byte each; scales are powers of two, one for all of K = 32
func.func @mxf8(%a: memref<16x32xf8E4M3FN>, %x: memref<16x1xf8E8M0FNU>, %b: memref<8x32xf4E2M1FN>, %y: memref<8x1xf8E8M0FNU>, %d: memref<16x8xf32>) {
  %0 = frag.load %a[0, 0] : memref<16x32xf8E4M3FN> -> !frag.tile<16x32xf8E4M3FN>
  %1 = frag.load %b[0, 0] transposed : memref<8x32xf4E2M1FN> -> !frag.tile<32x8xf4E2M1FN>
  %2 = frag.load %x[0, 0] : memref<16x1xf8E8M0FNU> -> !frag.tile<16x1xf8E8M0FNU>
  %3 = frag.load %y[0, 0] transposed : memref<8x1xf8E8M0FNU> -> !frag.tile<1x8xf8E8M0FNU>
  %zero = arith.constant 0.0 : f32
  %4 = frag.fill %zero : !sum
  %5 = frag.mma %0, %1, %4 scaled %2, %3 : !frag.tile<16x32xf8E4M3FN>, !frag.tile<32x8xf4E2M1FN>, !sum, !frag.tile<16x1xf8E8M0FNU>, !frag.tile<1x8xf8E8M0FNU> -> !sum
  frag.store %5, %d[0, 0] : !sum, memref<16x8xf32>
  func.return
}

!fp4 = !frag.packed<f4E2M1FN>

// 4-bit floats, two to a byte; an fp8 scale for every 16 of K = 64
func.func @nvf4(%a: memref<16x64x!fp4>, %x: memref<16x4xf8E4M3FN>, %b: memref<8x64x!fp4>, %y: memref<8x4xf8E4M3FN>, %d: memref<16x8xf32>) {
  %0 = frag.load %a[0, 0] : memref<16x64x!fp4> -> !frag.tile<16x64x!fp4>
  %1 = frag.load %b[0, 0] transposed : memref<8x64x!fp4> -> !frag.tile<64x8x!fp4>
  %2 = frag.load %x[0, 0] : memref<16x4xf8E4M3FN> -> !frag.tile<16x4xf8E4M3FN>
  %3 = frag.load %y[0, 0] transposed : memref<8x4xf8E4M3FN> -> !frag.tile<4x8xf8E4M3FN>
  %zero = arith.constant 0.0 : f32
  %4 = frag.fill %zero : !sum
  %5 = frag.mma %0, %1, %4 scaled %2, %3 : !frag.tile<16x64x!fp4>, !frag.tile<64x8x!fp4>, !sum, !frag.tile<16x4xf8E4M3FN>, !frag.tile<4x8xf8E4M3FN> -> !sum
  frag.store %5, %d[0, 0] : !sum, memref<16x8xf32>
  func.return
}
