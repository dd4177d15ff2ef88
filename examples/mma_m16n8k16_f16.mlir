// One warp, one instruction: m16n8k16 of f16 (summed in f32 or f16) and of bf16 (summed in f32).
//
// This is the instruction that most f16 kernels since Ampere are made of: lane l holds rows l / 4 and
// l / 4 + 8 of A and D, and column l / 4 of B.
//
//   fragir run examples/mma_m16n8k16_f16.mlir --entry f16_f32
//   fragir layout mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 a

func.func @f16_f32(%a: memref<16x16xf16>, %b: memref<16x8xf16>, %c: memref<16x8xf32>, %d: memref<16x8xf32>) {
  %0 = frag.load %a[0, 0] : memref<16x16xf16> -> !frag.tile<16x16xf16>
  %1 = frag.load %b[0, 0] : memref<16x8xf16> -> !frag.tile<16x8xf16>
  %2 = frag.load %c[0, 0] : memref<16x8xf32> -> !frag.tile<16x8xf32>
  %3 = frag.mma %0, %1, %2 : !frag.tile<16x16xf16>, !frag.tile<16x8xf16>, !frag.tile<16x8xf32> -> !frag.tile<16x8xf32>
  frag.store %3, %d[0, 0] : !frag.tile<16x8xf32>, memref<16x8xf32>
  func.return
}

func.func @f16_f16(%a: memref<16x16xf16>, %b: memref<16x8xf16>, %c: memref<16x8xf16>, %d: memref<16x8xf16>) {
  %0 = frag.load %a[0, 0] : memref<16x16xf16> -> !frag.tile<16x16xf16>
  %1 = frag.load %b[0, 0] : memref<16x8xf16> -> !frag.tile<16x8xf16>
  %2 = frag.load %c[0, 0] : memref<16x8xf16> -> !frag.tile<16x8xf16>
  %3 = frag.mma %0, %1, %2 : !frag.tile<16x16xf16>, !frag.tile<16x8xf16>, !frag.tile<16x8xf16> -> !frag.tile<16x8xf16>
  frag.store %3, %d[0, 0] : !frag.tile<16x8xf16>, memref<16x8xf16>
  func.return
}

func.func @bf16_f32(%a: memref<16x16xbf16>, %b: memref<16x8xbf16>, %c: memref<16x8xf32>, %d: memref<16x8xf32>) {
  %0 = frag.load %a[0, 0] : memref<16x16xbf16> -> !frag.tile<16x16xbf16>
  %1 = frag.load %b[0, 0] : memref<16x8xbf16> -> !frag.tile<16x8xbf16>
  %2 = frag.load %c[0, 0] : memref<16x8xf32> -> !frag.tile<16x8xf32>
  %3 = frag.mma %0, %1, %2 : !frag.tile<16x16xbf16>, !frag.tile<16x8xbf16>, !frag.tile<16x8xf32> -> !frag.tile<16x8xf32>
  frag.store %3, %d[0, 0] : !frag.tile<16x8xf32>, memref<16x8xf32>
  func.return
}
