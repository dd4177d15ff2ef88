// RUN: -p frag-place
// -----
// Only integers are clamped.
func.func @f(%a: memref<16x16xf16>, %b: memref<16x8xf16>, %c: memref<16x8xf32>) {
  %ta = frag.load %a[0, 0] : memref<16x16xf16> -> !frag.tile<16x16xf16>
  %tb = frag.load %b[0, 0] : memref<16x8xf16> -> !frag.tile<16x8xf16>
  %tc = frag.load %c[0, 0] : memref<16x8xf32> -> !frag.tile<16x8xf32>
  %d = frag.mma %ta, %tb, %tc satfinite : !frag.tile<16x16xf16>, !frag.tile<16x8xf16>, !frag.tile<16x8xf32> -> !frag.tile<16x8xf32>
  func.return
}
// -----
// Only f64 is rounded otherwise.
func.func @f(%a: memref<16x16xf16>, %b: memref<16x8xf16>, %c: memref<16x8xf32>) {
  %ta = frag.load %a[0, 0] : memref<16x16xf16> -> !frag.tile<16x16xf16>
  %tb = frag.load %b[0, 0] : memref<16x8xf16> -> !frag.tile<16x8xf16>
  %tc = frag.load %c[0, 0] : memref<16x8xf32> -> !frag.tile<16x8xf32>
  %d = frag.mma %ta, %tb, %tc rounding "rz" : !frag.tile<16x16xf16>, !frag.tile<16x8xf16>, !frag.tile<16x8xf32> -> !frag.tile<16x8xf32>
  func.return
}
// -----
// A rounding that there is not.
func.func @f(%a: memref<8x4xf64>, %b: memref<4x8xf64>, %c: memref<8x8xf64>) {
  %ta = frag.load %a[0, 0] : memref<8x4xf64> -> !frag.tile<8x4xf64>
  %tb = frag.load %b[0, 0] : memref<4x8xf64> -> !frag.tile<4x8xf64>
  %tc = frag.load %c[0, 0] : memref<8x8xf64> -> !frag.tile<8x8xf64>
  %d = frag.mma %ta, %tb, %tc rounding "up" : !frag.tile<8x4xf64>, !frag.tile<4x8xf64>, !frag.tile<8x8xf64> -> !frag.tile<8x8xf64>
  func.return
}
// -----
// Only single bits are combined.
func.func @f(%a: memref<16x16xf16>, %b: memref<16x8xf16>, %c: memref<16x8xf32>) {
  %ta = frag.load %a[0, 0] : memref<16x16xf16> -> !frag.tile<16x16xf16>
  %tb = frag.load %b[0, 0] : memref<16x8xf16> -> !frag.tile<16x8xf16>
  %tc = frag.load %c[0, 0] : memref<16x8xf32> -> !frag.tile<16x8xf32>
  %d = frag.mma %ta, %tb, %tc bitop "xor" : !frag.tile<16x16xf16>, !frag.tile<16x8xf16>, !frag.tile<16x8xf32> -> !frag.tile<16x8xf32>
  func.return
}
// -----
// A combination that there is not.
func.func @f(%a: memref<16x128xui1>, %b: memref<128x8xui1>, %c: memref<16x8xi32>) {
  %ta = frag.load %a[0, 0] : memref<16x128xui1> -> !frag.tile<16x128xui1>
  %tb = frag.load %b[0, 0] : memref<128x8xui1> -> !frag.tile<128x8xui1>
  %tc = frag.load %c[0, 0] : memref<16x8xi32> -> !frag.tile<16x8xi32>
  %d = frag.mma %ta, %tb, %tc bitop "or" : !frag.tile<16x128xui1>, !frag.tile<128x8xui1>, !frag.tile<16x8xi32> -> !frag.tile<16x8xi32>
  func.return
}
// -----
// A kind that there is not.
func.func @f(%a: memref<16x32xf8E4M3FN>, %b: memref<32x8xf8E4M3FN>, %c: memref<16x8xf32>) {
  %ta = frag.load %a[0, 0] : memref<16x32xf8E4M3FN> -> !frag.tile<16x32xf8E4M3FN>
  %tb = frag.load %b[0, 0] : memref<32x8xf8E4M3FN> -> !frag.tile<32x8xf8E4M3FN>
  %tc = frag.load %c[0, 0] : memref<16x8xf32> -> !frag.tile<16x8xf32>
  %d = frag.mma %ta, %tb, %tc kind "fp8" : !frag.tile<16x32xf8E4M3FN>, !frag.tile<32x8xf8E4M3FN>, !frag.tile<16x8xf32> -> !frag.tile<16x8xf32>
  func.return
}
// -----
// A kind of other types.
func.func @f(%a: memref<16x16xf16>, %b: memref<16x8xf16>, %c: memref<16x8xf32>) {
  %ta = frag.load %a[0, 0] : memref<16x16xf16> -> !frag.tile<16x16xf16>
  %tb = frag.load %b[0, 0] : memref<16x8xf16> -> !frag.tile<16x8xf16>
  %tc = frag.load %c[0, 0] : memref<16x8xf32> -> !frag.tile<16x8xf32>
  %d = frag.mma %ta, %tb, %tc kind "f8f6f4" : !frag.tile<16x16xf16>, !frag.tile<16x8xf16>, !frag.tile<16x8xf32> -> !frag.tile<16x8xf32>
  func.return
}
// -----
// A kind without its scales.
func.func @f(%a: memref<16x32xf8E4M3FN>, %b: memref<32x8xf8E4M3FN>, %c: memref<16x8xf32>) {
  %ta = frag.load %a[0, 0] : memref<16x32xf8E4M3FN> -> !frag.tile<16x32xf8E4M3FN>
  %tb = frag.load %b[0, 0] : memref<32x8xf8E4M3FN> -> !frag.tile<32x8xf8E4M3FN>
  %tc = frag.load %c[0, 0] : memref<16x8xf32> -> !frag.tile<16x8xf32>
  %d = frag.mma %ta, %tb, %tc kind "mxf8f6f4" : !frag.tile<16x32xf8E4M3FN>, !frag.tile<32x8xf8E4M3FN>, !frag.tile<16x8xf32> -> !frag.tile<16x8xf32>
  func.return
}
// -----
// Scales of a kind that has none.
func.func @f(%a: memref<16x32xf8E4M3FN>, %b: memref<32x8xf8E4M3FN>, %c: memref<16x8xf32>, %x: memref<16x1xf8E8M0FNU>, %y: memref<1x8xf8E8M0FNU>) {
  %ta = frag.load %a[0, 0] : memref<16x32xf8E4M3FN> -> !frag.tile<16x32xf8E4M3FN>
  %tb = frag.load %b[0, 0] : memref<32x8xf8E4M3FN> -> !frag.tile<32x8xf8E4M3FN>
  %tc = frag.load %c[0, 0] : memref<16x8xf32> -> !frag.tile<16x8xf32>
  %tx = frag.load %x[0, 0] : memref<16x1xf8E8M0FNU> -> !frag.tile<16x1xf8E8M0FNU>
  %ty = frag.load %y[0, 0] : memref<1x8xf8E8M0FNU> -> !frag.tile<1x8xf8E8M0FNU>
  %d = frag.mma %ta, %tb, %tc scaled %tx, %ty kind "f8f6f4" : !frag.tile<16x32xf8E4M3FN>, !frag.tile<32x8xf8E4M3FN>, !frag.tile<16x8xf32>, !frag.tile<16x1xf8E8M0FNU>, !frag.tile<1x8xf8E8M0FNU> -> !frag.tile<16x8xf32>
  func.return
}
// -----
// Packed elements without scales.
func.func @f(%a: memref<16x64x!frag.packed<f4E2M1FN>>, %b: memref<64x8x!frag.packed<f4E2M1FN>>, %c: memref<16x8xf32>) {
  %ta = frag.load %a[0, 0] : memref<16x64x!frag.packed<f4E2M1FN>> -> !frag.tile<16x64x!frag.packed<f4E2M1FN>>
  %tb = frag.load %b[0, 0] : memref<64x8x!frag.packed<f4E2M1FN>> -> !frag.tile<64x8x!frag.packed<f4E2M1FN>>
  %tc = frag.load %c[0, 0] : memref<16x8xf32> -> !frag.tile<16x8xf32>
  %d = frag.mma %ta, %tb, %tc : !frag.tile<16x64x!frag.packed<f4E2M1FN>>, !frag.tile<64x8x!frag.packed<f4E2M1FN>>, !frag.tile<16x8xf32> -> !frag.tile<16x8xf32>
  func.return
}
// -----
// Packed by unpacked.
func.func @f(%a: memref<16x64x!frag.packed<f4E2M1FN>>, %b: memref<64x8xf4E2M1FN>, %c: memref<16x8xf32>, %x: memref<16x2xf8E8M0FNU>, %y: memref<2x8xf8E8M0FNU>) {
  %ta = frag.load %a[0, 0] : memref<16x64x!frag.packed<f4E2M1FN>> -> !frag.tile<16x64x!frag.packed<f4E2M1FN>>
  %tb = frag.load %b[0, 0] : memref<64x8xf4E2M1FN> -> !frag.tile<64x8xf4E2M1FN>
  %tc = frag.load %c[0, 0] : memref<16x8xf32> -> !frag.tile<16x8xf32>
  %tx = frag.load %x[0, 0] : memref<16x2xf8E8M0FNU> -> !frag.tile<16x2xf8E8M0FNU>
  %ty = frag.load %y[0, 0] : memref<2x8xf8E8M0FNU> -> !frag.tile<2x8xf8E8M0FNU>
  %d = frag.mma %ta, %tb, %tc scaled %tx, %ty : !frag.tile<16x64x!frag.packed<f4E2M1FN>>, !frag.tile<64x8xf4E2M1FN>, !frag.tile<16x8xf32>, !frag.tile<16x2xf8E8M0FNU>, !frag.tile<2x8xf8E8M0FNU> -> !frag.tile<16x8xf32>
  func.return
}
// -----
// Scales of f16.
func.func @f(%a: memref<16x16xf16>, %b: memref<16x8xf16>, %c: memref<16x8xf32>, %x: memref<16x1xf8E8M0FNU>, %y: memref<1x8xf8E8M0FNU>) {
  %ta = frag.load %a[0, 0] : memref<16x16xf16> -> !frag.tile<16x16xf16>
  %tb = frag.load %b[0, 0] : memref<16x8xf16> -> !frag.tile<16x8xf16>
  %tc = frag.load %c[0, 0] : memref<16x8xf32> -> !frag.tile<16x8xf32>
  %tx = frag.load %x[0, 0] : memref<16x1xf8E8M0FNU> -> !frag.tile<16x1xf8E8M0FNU>
  %ty = frag.load %y[0, 0] : memref<1x8xf8E8M0FNU> -> !frag.tile<1x8xf8E8M0FNU>
  %d = frag.mma %ta, %tb, %tc scaled %tx, %ty : !frag.tile<16x16xf16>, !frag.tile<16x8xf16>, !frag.tile<16x8xf32>, !frag.tile<16x1xf8E8M0FNU>, !frag.tile<1x8xf8E8M0FNU> -> !frag.tile<16x8xf32>
  func.return
}
// -----
// Scales that are f16.
func.func @f(%a: memref<16x32xf8E4M3FN>, %b: memref<32x8xf8E4M3FN>, %c: memref<16x8xf32>, %x: memref<16x1xf16>, %y: memref<1x8xf16>) {
  %ta = frag.load %a[0, 0] : memref<16x32xf8E4M3FN> -> !frag.tile<16x32xf8E4M3FN>
  %tb = frag.load %b[0, 0] : memref<32x8xf8E4M3FN> -> !frag.tile<32x8xf8E4M3FN>
  %tc = frag.load %c[0, 0] : memref<16x8xf32> -> !frag.tile<16x8xf32>
  %tx = frag.load %x[0, 0] : memref<16x1xf16> -> !frag.tile<16x1xf16>
  %ty = frag.load %y[0, 0] : memref<1x8xf16> -> !frag.tile<1x8xf16>
  %d = frag.mma %ta, %tb, %tc scaled %tx, %ty : !frag.tile<16x32xf8E4M3FN>, !frag.tile<32x8xf8E4M3FN>, !frag.tile<16x8xf32>, !frag.tile<16x1xf16>, !frag.tile<1x8xf16> -> !frag.tile<16x8xf32>
  func.return
}
// -----
// Scales of two types.
func.func @f(%a: memref<16x64x!frag.packed<f4E2M1FN>>, %b: memref<64x8x!frag.packed<f4E2M1FN>>, %c: memref<16x8xf32>, %x: memref<16x4xf8E8M0FNU>, %y: memref<4x8xf8E4M3FN>) {
  %ta = frag.load %a[0, 0] : memref<16x64x!frag.packed<f4E2M1FN>> -> !frag.tile<16x64x!frag.packed<f4E2M1FN>>
  %tb = frag.load %b[0, 0] : memref<64x8x!frag.packed<f4E2M1FN>> -> !frag.tile<64x8x!frag.packed<f4E2M1FN>>
  %tc = frag.load %c[0, 0] : memref<16x8xf32> -> !frag.tile<16x8xf32>
  %tx = frag.load %x[0, 0] : memref<16x4xf8E8M0FNU> -> !frag.tile<16x4xf8E8M0FNU>
  %ty = frag.load %y[0, 0] : memref<4x8xf8E4M3FN> -> !frag.tile<4x8xf8E4M3FN>
  %d = frag.mma %ta, %tb, %tc scaled %tx, %ty : !frag.tile<16x64x!frag.packed<f4E2M1FN>>, !frag.tile<64x8x!frag.packed<f4E2M1FN>>, !frag.tile<16x8xf32>, !frag.tile<16x4xf8E8M0FNU>, !frag.tile<4x8xf8E4M3FN> -> !frag.tile<16x8xf32>
  func.return
}
// -----
// Scales of A alone.
func.func @f(%a: memref<16x32xf8E4M3FN>, %b: memref<32x8xf8E4M3FN>, %c: memref<16x8xf32>, %x: memref<16x1xf8E8M0FNU>) {
  %ta = frag.load %a[0, 0] : memref<16x32xf8E4M3FN> -> !frag.tile<16x32xf8E4M3FN>
  %tb = frag.load %b[0, 0] : memref<32x8xf8E4M3FN> -> !frag.tile<32x8xf8E4M3FN>
  %tc = frag.load %c[0, 0] : memref<16x8xf32> -> !frag.tile<16x8xf32>
  %tx = frag.load %x[0, 0] : memref<16x1xf8E8M0FNU> -> !frag.tile<16x1xf8E8M0FNU>
  %d = frag.mma %ta, %tb, %tc scaled %tx : !frag.tile<16x32xf8E4M3FN>, !frag.tile<32x8xf8E4M3FN>, !frag.tile<16x8xf32>, !frag.tile<16x1xf8E8M0FNU> -> !frag.tile<16x8xf32>
  func.return
}
// -----
// SFB the other way round.
func.func @f(%a: memref<16x32xf8E4M3FN>, %b: memref<32x8xf8E4M3FN>, %c: memref<16x8xf32>, %x: memref<16x1xf8E8M0FNU>, %y: memref<8x1xf8E8M0FNU>) {
  %ta = frag.load %a[0, 0] : memref<16x32xf8E4M3FN> -> !frag.tile<16x32xf8E4M3FN>
  %tb = frag.load %b[0, 0] : memref<32x8xf8E4M3FN> -> !frag.tile<32x8xf8E4M3FN>
  %tc = frag.load %c[0, 0] : memref<16x8xf32> -> !frag.tile<16x8xf32>
  %tx = frag.load %x[0, 0] : memref<16x1xf8E8M0FNU> -> !frag.tile<16x1xf8E8M0FNU>
  %ty = frag.load %y[0, 0] : memref<8x1xf8E8M0FNU> -> !frag.tile<8x1xf8E8M0FNU>
  %d = frag.mma %ta, %tb, %tc scaled %tx, %ty : !frag.tile<16x32xf8E4M3FN>, !frag.tile<32x8xf8E4M3FN>, !frag.tile<16x8xf32>, !frag.tile<16x1xf8E8M0FNU>, !frag.tile<8x1xf8E8M0FNU> -> !frag.tile<16x8xf32>
  func.return
}
// -----
// Blocks of 16.
func.func @f(%a: memref<16x32xf8E4M3FN>, %b: memref<32x8xf8E4M3FN>, %c: memref<16x8xf32>, %x: memref<16x2xf8E8M0FNU>, %y: memref<2x8xf8E8M0FNU>) {
  %ta = frag.load %a[0, 0] : memref<16x32xf8E4M3FN> -> !frag.tile<16x32xf8E4M3FN>
  %tb = frag.load %b[0, 0] : memref<32x8xf8E4M3FN> -> !frag.tile<32x8xf8E4M3FN>
  %tc = frag.load %c[0, 0] : memref<16x8xf32> -> !frag.tile<16x8xf32>
  %tx = frag.load %x[0, 0] : memref<16x2xf8E8M0FNU> -> !frag.tile<16x2xf8E8M0FNU>
  %ty = frag.load %y[0, 0] : memref<2x8xf8E8M0FNU> -> !frag.tile<2x8xf8E8M0FNU>
  %d = frag.mma %ta, %tb, %tc scaled %tx, %ty : !frag.tile<16x32xf8E4M3FN>, !frag.tile<32x8xf8E4M3FN>, !frag.tile<16x8xf32>, !frag.tile<16x2xf8E8M0FNU>, !frag.tile<2x8xf8E8M0FNU> -> !frag.tile<16x8xf32>
  func.return
}
// -----
// ue4m3 with bytes.
func.func @f(%a: memref<16x32xf8E4M3FN>, %b: memref<32x8xf8E4M3FN>, %c: memref<16x8xf32>, %x: memref<16x1xf8E4M3FN>, %y: memref<1x8xf8E4M3FN>) {
  %ta = frag.load %a[0, 0] : memref<16x32xf8E4M3FN> -> !frag.tile<16x32xf8E4M3FN>
  %tb = frag.load %b[0, 0] : memref<32x8xf8E4M3FN> -> !frag.tile<32x8xf8E4M3FN>
  %tc = frag.load %c[0, 0] : memref<16x8xf32> -> !frag.tile<16x8xf32>
  %tx = frag.load %x[0, 0] : memref<16x1xf8E4M3FN> -> !frag.tile<16x1xf8E4M3FN>
  %ty = frag.load %y[0, 0] : memref<1x8xf8E4M3FN> -> !frag.tile<1x8xf8E4M3FN>
  %d = frag.mma %ta, %tb, %tc scaled %tx, %ty : !frag.tile<16x32xf8E4M3FN>, !frag.tile<32x8xf8E4M3FN>, !frag.tile<16x8xf32>, !frag.tile<16x1xf8E4M3FN>, !frag.tile<1x8xf8E4M3FN> -> !frag.tile<16x8xf32>
  func.return
}
// -----
// Scaled sums in f16.
func.func @f(%a: memref<16x32xf8E4M3FN>, %b: memref<32x8xf8E4M3FN>, %c: memref<16x8xf16>, %x: memref<16x1xf8E8M0FNU>, %y: memref<1x8xf8E8M0FNU>) {
  %ta = frag.load %a[0, 0] : memref<16x32xf8E4M3FN> -> !frag.tile<16x32xf8E4M3FN>
  %tb = frag.load %b[0, 0] : memref<32x8xf8E4M3FN> -> !frag.tile<32x8xf8E4M3FN>
  %tc = frag.load %c[0, 0] : memref<16x8xf16> -> !frag.tile<16x8xf16>
  %tx = frag.load %x[0, 0] : memref<16x1xf8E8M0FNU> -> !frag.tile<16x1xf8E8M0FNU>
  %ty = frag.load %y[0, 0] : memref<1x8xf8E8M0FNU> -> !frag.tile<1x8xf8E8M0FNU>
  %d = frag.mma %ta, %tb, %tc scaled %tx, %ty : !frag.tile<16x32xf8E4M3FN>, !frag.tile<32x8xf8E4M3FN>, !frag.tile<16x8xf16>, !frag.tile<16x1xf8E8M0FNU>, !frag.tile<1x8xf8E8M0FNU> -> !frag.tile<16x8xf16>
  func.return
}
// -----
// mxf4 has no ue4m3.
func.func @f(%a: memref<16x64x!frag.packed<f4E2M1FN>>, %b: memref<64x8x!frag.packed<f4E2M1FN>>, %c: memref<16x8xf32>, %x: memref<16x4xf8E4M3FN>, %y: memref<4x8xf8E4M3FN>) {
  %ta = frag.load %a[0, 0] : memref<16x64x!frag.packed<f4E2M1FN>> -> !frag.tile<16x64x!frag.packed<f4E2M1FN>>
  %tb = frag.load %b[0, 0] : memref<64x8x!frag.packed<f4E2M1FN>> -> !frag.tile<64x8x!frag.packed<f4E2M1FN>>
  %tc = frag.load %c[0, 0] : memref<16x8xf32> -> !frag.tile<16x8xf32>
  %tx = frag.load %x[0, 0] : memref<16x4xf8E4M3FN> -> !frag.tile<16x4xf8E4M3FN>
  %ty = frag.load %y[0, 0] : memref<4x8xf8E4M3FN> -> !frag.tile<4x8xf8E4M3FN>
  %d = frag.mma %ta, %tb, %tc scaled %tx, %ty kind "mxf4" : !frag.tile<16x64x!frag.packed<f4E2M1FN>>, !frag.tile<64x8x!frag.packed<f4E2M1FN>>, !frag.tile<16x8xf32>, !frag.tile<16x4xf8E4M3FN>, !frag.tile<4x8xf8E4M3FN> -> !frag.tile<16x8xf32>
  func.return
}
// -----
// mxf4 of bytes.
func.func @f(%a: memref<16x32xf8E4M3FN>, %b: memref<32x8xf8E4M3FN>, %c: memref<16x8xf32>, %x: memref<16x1xf8E8M0FNU>, %y: memref<1x8xf8E8M0FNU>) {
  %ta = frag.load %a[0, 0] : memref<16x32xf8E4M3FN> -> !frag.tile<16x32xf8E4M3FN>
  %tb = frag.load %b[0, 0] : memref<32x8xf8E4M3FN> -> !frag.tile<32x8xf8E4M3FN>
  %tc = frag.load %c[0, 0] : memref<16x8xf32> -> !frag.tile<16x8xf32>
  %tx = frag.load %x[0, 0] : memref<16x1xf8E8M0FNU> -> !frag.tile<16x1xf8E8M0FNU>
  %ty = frag.load %y[0, 0] : memref<1x8xf8E8M0FNU> -> !frag.tile<1x8xf8E8M0FNU>
  %d = frag.mma %ta, %tb, %tc scaled %tx, %ty kind "mxf4" : !frag.tile<16x32xf8E4M3FN>, !frag.tile<32x8xf8E4M3FN>, !frag.tile<16x8xf32>, !frag.tile<16x1xf8E8M0FNU>, !frag.tile<1x8xf8E8M0FNU> -> !frag.tile<16x8xf32>
  func.return
}
// -----
// A machine that has no scales: sm_80.
func.func @f(%a: memref<16x32xf8E4M3FN>, %b: memref<32x8xf8E4M3FN>, %c: memref<16x8xf32>, %x: memref<16x1xf8E8M0FNU>, %y: memref<1x8xf8E8M0FNU>) {
  %ta = frag.load %a[0, 0] : memref<16x32xf8E4M3FN> -> !frag.tile<16x32xf8E4M3FN>
  %tb = frag.load %b[0, 0] : memref<32x8xf8E4M3FN> -> !frag.tile<32x8xf8E4M3FN>
  %tc = frag.load %c[0, 0] : memref<16x8xf32> -> !frag.tile<16x8xf32>
  %tx = frag.load %x[0, 0] : memref<16x1xf8E8M0FNU> -> !frag.tile<16x1xf8E8M0FNU>
  %ty = frag.load %y[0, 0] : memref<1x8xf8E8M0FNU> -> !frag.tile<1x8xf8E8M0FNU>
  %d = frag.mma %ta, %tb, %tc scaled %tx, %ty : !frag.tile<16x32xf8E4M3FN>, !frag.tile<32x8xf8E4M3FN>, !frag.tile<16x8xf32>, !frag.tile<16x1xf8E8M0FNU>, !frag.tile<1x8xf8E8M0FNU> -> !frag.tile<16x8xf32>
  func.return
}
// -----
// Unordered metadata of a kind.
func.func @f(%a: memref<16x32xf6E3M2FN>, %b: memref<64x8xf6E3M2FN>, %c: memref<16x8xf32>, %e: memref<16x16xui4>) {
  %ta = frag.load %a[0, 0] : memref<16x32xf6E3M2FN> -> !frag.tile<16x32xf6E3M2FN>
  %tb = frag.load %b[0, 0] : memref<64x8xf6E3M2FN> -> !frag.tile<64x8xf6E3M2FN>
  %tc = frag.load %c[0, 0] : memref<16x8xf32> -> !frag.tile<16x8xf32>
  %te = frag.load %e[0, 0] : memref<16x16xui4> -> !frag.tile<16x16xui4>
  %d = frag.mma_sparse %ta, %tb, %tc, %te unordered : !frag.tile<16x32xf6E3M2FN>, !frag.tile<64x8xf6E3M2FN>, !frag.tile<16x8xf32>, !frag.tile<16x16xui4> -> !frag.tile<16x8xf32>
  func.return
}
// -----
// A sparse shape that there is not.
func.func @f(%a: memref<16x16xf16>, %b: memref<32x8xf16>, %c: memref<16x8xf32>, %e: memref<16x8xui4>) {
  %ta = frag.load %a[0, 0] : memref<16x16xf16> -> !frag.tile<16x16xf16>
  %tb = frag.load %b[0, 0] : memref<32x8xf16> -> !frag.tile<32x8xf16>
  %tc = frag.load %c[0, 0] : memref<16x8xf32> -> !frag.tile<16x8xf32>
  %te = frag.load %e[0, 0] : memref<16x8xui4> -> !frag.tile<16x8xui4>
  %d = frag.mma_sparse %ta, %tb, %tc, %te using "m16n8k8.f16" : !frag.tile<16x16xf16>, !frag.tile<32x8xf16>, !frag.tile<16x8xf32>, !frag.tile<16x8xui4> -> !frag.tile<16x8xf32>
  func.return
}
