// One warp, one instruction: m8n8k4 of f64. Two elements of D a lane, one of A and one of B.
//
//   fragir run examples/mma_m8n8k4_f64.mlir

func.func @mma_m8n8k4_f64(%a: memref<8x4xf64>, %b: memref<4x8xf64>, %c: memref<8x8xf64>, %d: memref<8x8xf64>) {
  %0 = frag.load %a[0, 0] : memref<8x4xf64> -> !frag.tile<8x4xf64>
  %1 = frag.load %b[0, 0] : memref<4x8xf64> -> !frag.tile<4x8xf64>
  %2 = frag.load %c[0, 0] : memref<8x8xf64> -> !frag.tile<8x8xf64>
  %3 = frag.mma %0, %1, %2 : !frag.tile<8x4xf64>, !frag.tile<4x8xf64>, !frag.tile<8x8xf64> -> !frag.tile<8x8xf64>
  frag.store %3, %d[0, 0] : !frag.tile<8x8xf64>, memref<8x8xf64>
  func.return
}
