// One warp, one instruction: m16n8k8 of tf32. In memory tf32 is an f32 of which the tensor core
// ignores the 13 lowest bits; `frag.cast` rounds an f32 to it.
//
//   fragir run examples/mma_m16n8k8_tf32.mlir --entry tf32

func.func @tf32(%a: memref<16x8xtf32>, %b: memref<8x8xtf32>, %c: memref<16x8xf32>, %d: memref<16x8xf32>) {
  %0 = frag.load %a[0, 0] : memref<16x8xtf32> -> !frag.tile<16x8xtf32>
  %1 = frag.load %b[0, 0] : memref<8x8xtf32> -> !frag.tile<8x8xtf32>
  %2 = frag.load %c[0, 0] : memref<16x8xf32> -> !frag.tile<16x8xf32>
  %3 = frag.mma %0, %1, %2 : !frag.tile<16x8xtf32>, !frag.tile<8x8xtf32>, !frag.tile<16x8xf32> -> !frag.tile<16x8xf32>
  frag.store %3, %d[0, 0] : !frag.tile<16x8xf32>, memref<16x8xf32>
  func.return
}

func.func @f32_rounded(%a: memref<16x8xf32>, %b: memref<8x8xf32>, %d: memref<16x8xf32>) {
  %0 = frag.load %a[0, 0] : memref<16x8xf32> -> !frag.tile<16x8xf32>
  %1 = frag.cast %0 : !frag.tile<16x8xf32> -> !frag.tile<16x8xtf32>
  %2 = frag.load %b[0, 0] : memref<8x8xf32> -> !frag.tile<8x8xf32>
  %3 = frag.cast %2 : !frag.tile<8x8xf32> -> !frag.tile<8x8xtf32>
  %zero = arith.constant 0.0 : f32
  %4 = frag.fill %zero : !frag.tile<16x8xf32>
  %5 = frag.mma %1, %3, %4 : !frag.tile<16x8xtf32>, !frag.tile<8x8xtf32>, !frag.tile<16x8xf32> -> !frag.tile<16x8xf32>
  frag.store %5, %d[0, 0] : !frag.tile<16x8xf32>, memref<16x8xf32>
  func.return
}
