// RUN: -p frag-place
// One tile as both operands: loaded once, and converted where it is made.
func.func @square(%a: memref<16x16xf16>, %d: memref<16x16xf32>) {
  %t = frag.load %a[0, 0] : memref<16x16xf16> -> !frag.tile<16x16xf16>
  %z = arith.constant 0.0 : f32
  %c = frag.fill %z : !frag.tile<16x16xf32>
  %s = frag.mma %t, %t, %c : !frag.tile<16x16xf16>, !frag.tile<16x16xf16>, !frag.tile<16x16xf32> -> !frag.tile<16x16xf32>
  frag.store %s, %d[0, 0] : !frag.tile<16x16xf32>, memref<16x16xf32>
  func.return
}
// A sum is the operand of the next product; a constant is made again instead of converted.
func.func @chain(%a: memref<16x16xf16>, %b: memref<16x16xf16>, %d: memref<16x16xf16>) {
  %ta = frag.load %a[0, 0] : memref<16x16xf16> -> !frag.tile<16x16xf16>
  %tb = frag.load %b[0, 0] : memref<16x16xf16> -> !frag.tile<16x16xf16>
  %z = arith.constant 0.0 : f16
  %c = frag.fill %z : !frag.tile<16x16xf16>
  %s = frag.mma %ta, %tb, %c : !frag.tile<16x16xf16>, !frag.tile<16x16xf16>, !frag.tile<16x16xf16> -> !frag.tile<16x16xf16>
  %t = frag.mma %s, %c, %c : !frag.tile<16x16xf16>, !frag.tile<16x16xf16>, !frag.tile<16x16xf16> -> !frag.tile<16x16xf16>
  frag.store %t, %d[0, 0] : !frag.tile<16x16xf16>, memref<16x16xf16>
  func.return
}
