// RUN: -p frag-place
// The largest K that divides the tiles.
func.func @f(%a: memref<32x32xf16>, %b: memref<32x16xf16>, %c: memref<32x16xf32>) {
  %ta = frag.load %a[0, 0] : memref<32x32xf16> -> !frag.tile<32x32xf16>
  %tb = frag.load %b[0, 0] : memref<32x16xf16> -> !frag.tile<32x16xf16>
  %tc = frag.load %c[0, 0] : memref<32x16xf32> -> !frag.tile<32x16xf32>
  %d = frag.mma %ta, %tb, %tc : !frag.tile<32x32xf16>, !frag.tile<32x16xf16>, !frag.tile<32x16xf32> -> !frag.tile<32x16xf32>
  func.return
}
// As asked for.
func.func @using(%a: memref<32x32xf16>, %b: memref<32x16xf16>, %c: memref<32x16xf32>) {
  %ta = frag.load %a[0, 0] : memref<32x32xf16> -> !frag.tile<32x32xf16>
  %tb = frag.load %b[0, 0] : memref<32x16xf16> -> !frag.tile<32x16xf16>
  %tc = frag.load %c[0, 0] : memref<32x16xf32> -> !frag.tile<32x16xf32>
  %d = frag.mma %ta, %tb, %tc using "m16n8k8.f16" : !frag.tile<32x32xf16>, !frag.tile<32x16xf16>, !frag.tile<32x16xf32> -> !frag.tile<32x16xf32>
  func.return
}
// Four products; C and D have layouts of their own.
func.func @products(%a: memref<8x4x4xf16>, %b: memref<4x8x4xf16>, %c: memref<8x8x4xf16>) {
  %ta = frag.load %a[0, 0, 0] : memref<8x4x4xf16> -> !frag.tile<8x4x4xf16>
  %tb = frag.load %b[0, 0, 0] : memref<4x8x4xf16> -> !frag.tile<4x8x4xf16>
  %tc = frag.load %c[0, 0, 0] : memref<8x8x4xf16> -> !frag.tile<8x8x4xf16>
  %d = frag.mma %ta, %tb, %tc using "m8n8k4.f16.col.row" : !frag.tile<8x4x4xf16>, !frag.tile<4x8x4xf16>, !frag.tile<8x8x4xf16> -> !frag.tile<8x8x4xf32>
  func.return
}
// Mixed signs.
func.func @signs(%a: memref<8x16xsi8>, %b: memref<16x8xui8>, %c: memref<8x8xi32>) {
  %ta = frag.load %a[0, 0] : memref<8x16xsi8> -> !frag.tile<8x16xsi8>
  %tb = frag.load %b[0, 0] : memref<16x8xui8> -> !frag.tile<16x8xui8>
  %tc = frag.load %c[0, 0] : memref<8x8xi32> -> !frag.tile<8x8xi32>
  %d = frag.mma %ta, %tb, %tc : !frag.tile<8x16xsi8>, !frag.tile<16x8xui8>, !frag.tile<8x8xi32> -> !frag.tile<8x8xi32>
  func.return
}
// Four warps.
func.func @warps(%a: memref<64x16xbf16>, %b: memref<16x32xbf16>, %c: memref<64x32xf32>) attributes {frag.warps = array<i64: 2, 2>} {
  %ta = frag.load %a[0, 0] : memref<64x16xbf16> -> !frag.tile<64x16xbf16>
  %tb = frag.load %b[0, 0] : memref<16x32xbf16> -> !frag.tile<16x32xbf16>
  %tc = frag.load %c[0, 0] : memref<64x32xf32> -> !frag.tile<64x32xf32>
  %d = frag.mma %ta, %tb, %tc : !frag.tile<64x16xbf16>, !frag.tile<16x32xbf16>, !frag.tile<64x32xf32> -> !frag.tile<64x32xf32>
  func.return
}
