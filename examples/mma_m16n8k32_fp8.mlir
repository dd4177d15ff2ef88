// One warp, one instruction: m16n8k32 of 8-bit floats: e4m3 (f8E4M3FN), e5m2 (f8E5M2) and both mixed,
// summed in f32 or f16. Needs sm_89 or later.
//
//   fragir run examples/mma_m16n8k32_fp8.mlir --entry e4m3 --target sm_89

func.func @e4m3(%a: memref<16x32xf8E4M3FN>, %b: memref<32x8xf8E4M3FN>, %c: memref<16x8xf32>, %d: memref<16x8xf32>) {
  %0 = frag.load %a[0, 0] : memref<16x32xf8E4M3FN> -> !frag.tile<16x32xf8E4M3FN>
  %1 = frag.load %b[0, 0] : memref<32x8xf8E4M3FN> -> !frag.tile<32x8xf8E4M3FN>
  %2 = frag.load %c[0, 0] : memref<16x8xf32> -> !frag.tile<16x8xf32>
  %3 = frag.mma %0, %1, %2 : !frag.tile<16x32xf8E4M3FN>, !frag.tile<32x8xf8E4M3FN>, !frag.tile<16x8xf32> -> !frag.tile<16x8xf32>
  frag.store %3, %d[0, 0] : !frag.tile<16x8xf32>, memref<16x8xf32>
  func.return
}

func.func @e5m2(%a: memref<16x32xf8E5M2>, %b: memref<32x8xf8E5M2>, %c: memref<16x8xf32>, %d: memref<16x8xf32>) {
  %0 = frag.load %a[0, 0] : memref<16x32xf8E5M2> -> !frag.tile<16x32xf8E5M2>
  %1 = frag.load %b[0, 0] : memref<32x8xf8E5M2> -> !frag.tile<32x8xf8E5M2>
  %2 = frag.load %c[0, 0] : memref<16x8xf32> -> !frag.tile<16x8xf32>
  %3 = frag.mma %0, %1, %2 : !frag.tile<16x32xf8E5M2>, !frag.tile<32x8xf8E5M2>, !frag.tile<16x8xf32> -> !frag.tile<16x8xf32>
  frag.store %3, %d[0, 0] : !frag.tile<16x8xf32>, memref<16x8xf32>
  func.return
}

func.func @e4m3_e5m2(%a: memref<16x32xf8E4M3FN>, %b: memref<32x8xf8E5M2>, %c: memref<16x8xf32>, %d: memref<16x8xf32>) {
  %0 = frag.load %a[0, 0] : memref<16x32xf8E4M3FN> -> !frag.tile<16x32xf8E4M3FN>
  %1 = frag.load %b[0, 0] : memref<32x8xf8E5M2> -> !frag.tile<32x8xf8E5M2>
  %2 = frag.load %c[0, 0] : memref<16x8xf32> -> !frag.tile<16x8xf32>
  %3 = frag.mma %0, %1, %2 : !frag.tile<16x32xf8E4M3FN>, !frag.tile<32x8xf8E5M2>, !frag.tile<16x8xf32> -> !frag.tile<16x8xf32>
  frag.store %3, %d[0, 0] : !frag.tile<16x8xf32>, memref<16x8xf32>
  func.return
}

func.func @e4m3_f16(%a: memref<16x32xf8E4M3FN>, %b: memref<32x8xf8E4M3FN>, %c: memref<16x8xf16>, %d: memref<16x8xf16>) {
  %0 = frag.load %a[0, 0] : memref<16x32xf8E4M3FN> -> !frag.tile<16x32xf8E4M3FN>
  %1 = frag.load %b[0, 0] : memref<32x8xf8E4M3FN> -> !frag.tile<32x8xf8E4M3FN>
  %2 = frag.load %c[0, 0] : memref<16x8xf16> -> !frag.tile<16x8xf16>
  %3 = frag.mma %0, %1, %2 : !frag.tile<16x32xf8E4M3FN>, !frag.tile<32x8xf8E4M3FN>, !frag.tile<16x8xf16> -> !frag.tile<16x8xf16>
  frag.store %3, %d[0, 0] : !frag.tile<16x8xf16>, memref<16x8xf16>
  func.return
}
