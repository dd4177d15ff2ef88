// RUN: -p frag-place{target=sm_120a}
// Four instructions along K take turns with the lanes of a quad (selectors 0 to 3), two down the rows.
func.func @turns(%a: memref<32x32xf16>, %b: memref<64x8xf16>, %c: memref<32x8xf32>, %e: memref<32x16xui4>) {
  %ta = frag.load %a[0, 0] : memref<32x32xf16> -> !frag.tile<32x32xf16>
  %tb = frag.load %b[0, 0] : memref<64x8xf16> -> !frag.tile<64x8xf16>
  %tc = frag.load %c[0, 0] : memref<32x8xf32> -> !frag.tile<32x8xf32>
  %te = frag.load %e[0, 0] : memref<32x16xui4> -> !frag.tile<32x16xui4>
  %d = frag.mma_sparse %ta, %tb, %tc, %te using "m16n8k16.f16" : !frag.tile<32x32xf16>, !frag.tile<64x8xf16>, !frag.tile<32x8xf32>, !frag.tile<32x16xui4> -> !frag.tile<32x8xf32>
  func.return
}
// Three along K do not come out even with two turns: every lane pair has the same.
func.func @pairs(%a: memref<16x48xsi8>, %b: memref<96x8xsi8>, %c: memref<16x8xi32>, %e: memref<16x24xui4>) {
  %ta = frag.load %a[0, 0] : memref<16x48xsi8> -> !frag.tile<16x48xsi8>
  %tb = frag.load %b[0, 0] : memref<96x8xsi8> -> !frag.tile<96x8xsi8>
  %tc = frag.load %c[0, 0] : memref<16x8xi32> -> !frag.tile<16x8xi32>
  %te = frag.load %e[0, 0] : memref<16x24xui4> -> !frag.tile<16x24xui4>
  %d = frag.mma_sparse %ta, %tb, %tc, %te unordered satfinite using "m16n8k32.s8" : !frag.tile<16x48xsi8>, !frag.tile<96x8xsi8>, !frag.tile<16x8xi32>, !frag.tile<16x24xui4> -> !frag.tile<16x8xi32>
  func.return
}
// Four do: twice two turns.
func.func @even(%a: memref<16x64xsi8>, %b: memref<128x8xui8>, %c: memref<16x8xi32>, %e: memref<16x32xui4>) {
  %ta = frag.load %a[0, 0] : memref<16x64xsi8> -> !frag.tile<16x64xsi8>
  %tb = frag.load %b[0, 0] : memref<128x8xui8> -> !frag.tile<128x8xui8>
  %tc = frag.load %c[0, 0] : memref<16x8xi32> -> !frag.tile<16x8xi32>
  %te = frag.load %e[0, 0] : memref<16x32xui4> -> !frag.tile<16x32xui4>
  %d = frag.mma_sparse %ta, %tb, %tc, %te using "m16n8k32.s8" : !frag.tile<16x64xsi8>, !frag.tile<128x8xui8>, !frag.tile<16x8xi32>, !frag.tile<16x32xui4> -> !frag.tile<16x8xi32>
  func.return
}
// Blocks of 32 along the full K; a nibble of metadata for every eight.
func.func @scaled(%a: memref<16x64x!frag.packed<f4E2M1FN>>, %b: memref<128x8x!frag.packed<f4E2M1FN>>, %c: memref<16x8xf32>, %e: memref<16x16xui4>, %x: memref<16x4xf8E4M3FN>, %y: memref<4x8xf8E4M3FN>) {
  %ta = frag.load %a[0, 0] : memref<16x64x!frag.packed<f4E2M1FN>> -> !frag.tile<16x64x!frag.packed<f4E2M1FN>>
  %tb = frag.load %b[0, 0] : memref<128x8x!frag.packed<f4E2M1FN>> -> !frag.tile<128x8x!frag.packed<f4E2M1FN>>
  %tc = frag.load %c[0, 0] : memref<16x8xf32> -> !frag.tile<16x8xf32>
  %te = frag.load %e[0, 0] : memref<16x16xui4> -> !frag.tile<16x16xui4>
  %tx = frag.load %x[0, 0] : memref<16x4xf8E4M3FN> -> !frag.tile<16x4xf8E4M3FN>
  %ty = frag.load %y[0, 0] : memref<4x8xf8E4M3FN> -> !frag.tile<4x8xf8E4M3FN>
  %d = frag.mma_sparse %ta, %tb, %tc, %te scaled %tx, %ty : !frag.tile<16x64x!frag.packed<f4E2M1FN>>, !frag.tile<128x8x!frag.packed<f4E2M1FN>>, !frag.tile<16x8xf32>, !frag.tile<16x16xui4>, !frag.tile<16x4xf8E4M3FN>, !frag.tile<4x8xf8E4M3FN> -> !frag.tile<16x8xf32>
  func.return
}
