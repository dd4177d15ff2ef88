// One warp, one instruction: m16n8k8 of f16 (summed in f32 or f16) and of bf16 (summed in f32).
//
//   fragir run examples/mma_m16n8k8_f16.mlir --entry f16_f32

func.func @f16_f32(%a: memref<16x8xf16>, %b: memref<8x8xf16>, %c: memref<16x8xf32>, %d: memref<16x8xf32>) {
  %0 = frag.load %a[0, 0] : memref<16x8xf16> -> !frag.tile<16x8xf16>
  %1 = frag.load %b[0, 0] : memref<8x8xf16> -> !frag.tile<8x8xf16>
  %2 = frag.load %c[0, 0] : memref<16x8xf32> -> !frag.tile<16x8xf32>
  %3 = frag.mma %0, %1, %2 : !frag.tile<16x8xf16>, !frag.tile<8x8xf16>, !frag.tile<16x8xf32> -> !frag.tile<16x8xf32>
  frag.store %3, %d[0, 0] : !frag.tile<16x8xf32>, memref<16x8xf32>
  func.return
}

func.func @f16_f16(%a: memref<16x8xf16>, %b: memref<8x8xf16>, %c: memref<16x8xf16>, %d: memref<16x8xf16>) {
  %0 = frag.load %a[0, 0] : memref<16x8xf16> -> !frag.tile<16x8xf16>
  %1 = frag.load %b[0, 0] : memref<8x8xf16> -> !frag.tile<8x8xf16>
  %2 = frag.load %c[0, 0] : memref<16x8xf16> -> !frag.tile<16x8xf16>
  %3 = frag.mma %0, %1, %2 : !frag.tile<16x8xf16>, !frag.tile<8x8xf16>, !frag.tile<16x8xf16> -> !frag.tile<16x8xf16>
  frag.store %3, %d[0, 0] : !frag.tile<16x8xf16>, memref<16x8xf16>
  func.return
}

func.func @bf16_f32(%a: memref<16x8xbf16>, %b: memref<8x8xbf16>, %c: memref<16x8xf32>, %d: memref<16x8xf32>) {
  %0 = frag.load %a[0, 0] : memref<16x8xbf16> -> !frag.tile<16x8xbf16>
  %1 = frag.load %b[0, 0] : memref<8x8xbf16> -> !frag.tile<8x8xbf16>
  %2 = frag.load %c[0, 0] : memref<16x8xf32> -> !frag.tile<16x8xf32>
  %3 = frag.mma %0, %1, %2 : !frag.tile<16x8xbf16>, !frag.tile<8x8xbf16>, !frag.tile<16x8xf32> -> !frag.tile<16x8xf32>
  frag.store %3, %d[0, 0] : !frag.tile<16x8xf32>, memref<16x8xf32>
  func.return
}
