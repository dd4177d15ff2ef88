// RUN: -p frag-place{target=sm_120a}
// mxf8f6f4: two blocks of 32, two 16-row parts by thread 0 and 1, two 8-column parts likewise.
func.func @bytes(%a: memref<32x64xf8E4M3FN>, %b: memref<64x16xf4E2M1FN>, %c: memref<32x16xf32>, %x: memref<32x2xf8E8M0FNU>, %y: memref<2x16xf8E8M0FNU>) {
  %ta = frag.load %a[0, 0] : memref<32x64xf8E4M3FN> -> !frag.tile<32x64xf8E4M3FN>
  %tb = frag.load %b[0, 0] : memref<64x16xf4E2M1FN> -> !frag.tile<64x16xf4E2M1FN>
  %tc = frag.load %c[0, 0] : memref<32x16xf32> -> !frag.tile<32x16xf32>
  %tx = frag.load %x[0, 0] : memref<32x2xf8E8M0FNU> -> !frag.tile<32x2xf8E8M0FNU>
  %ty = frag.load %y[0, 0] : memref<2x16xf8E8M0FNU> -> !frag.tile<2x16xf8E8M0FNU>
  %d = frag.mma %ta, %tb, %tc scaled %tx, %ty : !frag.tile<32x64xf8E4M3FN>, !frag.tile<64x16xf4E2M1FN>, !frag.tile<32x16xf32>, !frag.tile<32x2xf8E8M0FNU>, !frag.tile<2x16xf8E8M0FNU> -> !frag.tile<32x16xf32>
  func.return
}
// mxf4nvf4: blocks of 16 with scales in ue4m3; one part each, so every thread holds it.
func.func @packed(%a: memref<16x128x!frag.packed<f4E2M1FN>>, %b: memref<128x8x!frag.packed<f4E2M1FN>>, %c: memref<16x8xf32>, %x: memref<16x8xf8E4M3FN>, %y: memref<8x8xf8E4M3FN>) {
  %ta = frag.load %a[0, 0] : memref<16x128x!frag.packed<f4E2M1FN>> -> !frag.tile<16x128x!frag.packed<f4E2M1FN>>
  %tb = frag.load %b[0, 0] : memref<128x8x!frag.packed<f4E2M1FN>> -> !frag.tile<128x8x!frag.packed<f4E2M1FN>>
  %tc = frag.load %c[0, 0] : memref<16x8xf32> -> !frag.tile<16x8xf32>
  %tx = frag.load %x[0, 0] : memref<16x8xf8E4M3FN> -> !frag.tile<16x8xf8E4M3FN>
  %ty = frag.load %y[0, 0] : memref<8x8xf8E4M3FN> -> !frag.tile<8x8xf8E4M3FN>
  %d = frag.mma %ta, %tb, %tc scaled %tx, %ty : !frag.tile<16x128x!frag.packed<f4E2M1FN>>, !frag.tile<128x8x!frag.packed<f4E2M1FN>>, !frag.tile<16x8xf32>, !frag.tile<16x8xf8E4M3FN>, !frag.tile<8x8xf8E4M3FN> -> !frag.tile<16x8xf32>
  func.return
}
// The kind that the types leave open; two warps below each other share B's scales; 3 parts of columns.
func.func @named(%a: memref<64x64x!frag.packed<f4E2M1FN>>, %b: memref<64x24x!frag.packed<f4E2M1FN>>, %c: memref<64x24xf32>, %x: memref<64x2xf8E8M0FNU>, %y: memref<2x24xf8E8M0FNU>) attributes {frag.warps = array<i64: 2, 1>} {
  %ta = frag.load %a[0, 0] : memref<64x64x!frag.packed<f4E2M1FN>> -> !frag.tile<64x64x!frag.packed<f4E2M1FN>>
  %tb = frag.load %b[0, 0] : memref<64x24x!frag.packed<f4E2M1FN>> -> !frag.tile<64x24x!frag.packed<f4E2M1FN>>
  %tc = frag.load %c[0, 0] : memref<64x24xf32> -> !frag.tile<64x24xf32>
  %tx = frag.load %x[0, 0] : memref<64x2xf8E8M0FNU> -> !frag.tile<64x2xf8E8M0FNU>
  %ty = frag.load %y[0, 0] : memref<2x24xf8E8M0FNU> -> !frag.tile<2x24xf8E8M0FNU>
  %d = frag.mma %ta, %tb, %tc scaled %tx, %ty kind "mxf4nvf4" : !frag.tile<64x64x!frag.packed<f4E2M1FN>>, !frag.tile<64x24x!frag.packed<f4E2M1FN>>, !frag.tile<64x24xf32>, !frag.tile<64x2xf8E8M0FNU>, !frag.tile<2x24xf8E8M0FNU> -> !frag.tile<64x24xf32>
  func.return
}
// Sums that are clamped.
func.func @clamped(%a: memref<16x32xsi8>, %b: memref<32x8xui8>, %c: memref<16x8xi32>) {
  %ta = frag.load %a[0, 0] : memref<16x32xsi8> -> !frag.tile<16x32xsi8>
  %tb = frag.load %b[0, 0] : memref<32x8xui8> -> !frag.tile<32x8xui8>
  %tc = frag.load %c[0, 0] : memref<16x8xi32> -> !frag.tile<16x8xi32>
  %d = frag.mma %ta, %tb, %tc satfinite : !frag.tile<16x32xsi8>, !frag.tile<32x8xui8>, !frag.tile<16x8xi32> -> !frag.tile<16x8xi32>
  func.return
}
// Sums that are rounded down.
func.func @rounded(%a: memref<8x4xf64>, %b: memref<4x8xf64>, %c: memref<8x8xf64>) {
  %ta = frag.load %a[0, 0] : memref<8x4xf64> -> !frag.tile<8x4xf64>
  %tb = frag.load %b[0, 0] : memref<4x8xf64> -> !frag.tile<4x8xf64>
  %tc = frag.load %c[0, 0] : memref<8x8xf64> -> !frag.tile<8x8xf64>
  %d = frag.mma %ta, %tb, %tc rounding "rm" using "m8n8k4.f64" : !frag.tile<8x4xf64>, !frag.tile<4x8xf64>, !frag.tile<8x8xf64> -> !frag.tile<8x8xf64>
  func.return
}
// Bits that differ.
func.func @differing(%a: memref<16x128xui1>, %b: memref<128x8xui1>, %c: memref<16x8xi32>) {
  %ta = frag.load %a[0, 0] : memref<16x128xui1> -> !frag.tile<16x128xui1>
  %tb = frag.load %b[0, 0] : memref<128x8xui1> -> !frag.tile<128x8xui1>
  %tc = frag.load %c[0, 0] : memref<16x8xi32> -> !frag.tile<16x8xi32>
  %d = frag.mma %ta, %tb, %tc bitop "xor" : !frag.tile<16x128xui1>, !frag.tile<128x8xui1>, !frag.tile<16x8xi32> -> !frag.tile<16x8xi32>
  func.return
}
