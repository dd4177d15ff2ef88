// RUN: -p canonicalize
// Conversions of conversions, and back to where a tile was.
!rows = !frag.tile<16x8xf32, #frag.mma<m16n8k16.f16, c>>
!other = !frag.tile<16x8xf32, #frag.layout<"lane [4:(0,1) 8:(1,0)] element [2:(0,4) 2:(8,0)]">>
func.func @convert(%x: !rows) -> (!rows, !other, !frag.tile<16x8xf32>, !other) {
  %0 = frag.convert %x : !rows -> !other
  %1 = frag.convert %0 : !other -> !rows
  %2 = frag.convert %x : !rows -> !frag.tile<16x8xf32>
  %3 = frag.convert %2 : !frag.tile<16x8xf32> -> !other
  %4 = frag.convert %0 : !other -> !frag.tile<16x8xf32>
  %c = arith.constant 1.0 : f32
  %5 = frag.fill %c : !rows
  %6 = frag.convert %5 : !rows -> !other
  func.return %1, %3, %4, %6 : !rows, !other, !frag.tile<16x8xf32>, !other
}
// What must be free is said of that conversion, and stays; the first one is none.
func.func @kept(%x: !rows) -> !other {
  %0 = frag.convert %x assert_free : !rows -> !rows
  %1 = frag.convert %0 assert_free : !rows -> !other
  func.return %1 : !other
}
// f16 in f32 loses nothing; f32 in f16 does. An infinity of e5m2 would be clamped on the way back.
func.func @cast(%h: !frag.tile<8xf16>, %f: !frag.tile<8xf32>, %e: !frag.tile<8xf8E5M2>, %b: !frag.tile<8xi8>) -> (!frag.tile<8xf16>, !frag.tile<8xbf16>, !frag.tile<8xf32>, !frag.tile<8xf8E5M2>, !frag.tile<8xf16>) {
  %0 = frag.cast %h : !frag.tile<8xf16> -> !frag.tile<8xf32>
  %1 = frag.cast %0 : !frag.tile<8xf32> -> !frag.tile<8xf16>
  %2 = frag.cast %0 : !frag.tile<8xf32> -> !frag.tile<8xbf16>
  %3 = frag.cast %f : !frag.tile<8xf32> -> !frag.tile<8xf16>
  %4 = frag.cast %3 : !frag.tile<8xf16> -> !frag.tile<8xf32>
  %5 = frag.cast %e : !frag.tile<8xf8E5M2> -> !frag.tile<8xf32>
  %6 = frag.cast %5 : !frag.tile<8xf32> -> !frag.tile<8xf8E5M2>
  %7 = frag.cast %b : !frag.tile<8xi8> -> !frag.tile<8xi32>
  %8 = frag.cast %7 : !frag.tile<8xi32> -> !frag.tile<8xf16>
  func.return %1, %2, %4, %6, %8 : !frag.tile<8xf16>, !frag.tile<8xbf16>, !frag.tile<8xf32>, !frag.tile<8xf8E5M2>, !frag.tile<8xf16>
}
// Of f32 an integer is clamped, of i16 its low bits are kept.
func.func @clamped(%x: !frag.tile<8xi16>) -> !frag.tile<8xi8> {
  %0 = frag.cast %x : !frag.tile<8xi16> -> !frag.tile<8xf32>
  %1 = frag.cast %0 : !frag.tile<8xf32> -> !frag.tile<8xi8>
  func.return %1 : !frag.tile<8xi8>
}
// Two turns are one, or none.
func.func @transpose(%x: !frag.tile<2x4x8xf32>) -> (!frag.tile<2x4x8xf32>, !frag.tile<8x2x4xf32>) {
  %0 = frag.transpose %x [1, 2, 0] : !frag.tile<2x4x8xf32> -> !frag.tile<4x8x2xf32>
  %1 = frag.transpose %0 [2, 0, 1] : !frag.tile<4x8x2xf32> -> !frag.tile<2x4x8xf32>
  %2 = frag.transpose %0 [1, 2, 0] : !frag.tile<4x8x2xf32> -> !frag.tile<8x2x4xf32>
  func.return %1, %2 : !frag.tile<2x4x8xf32>, !frag.tile<8x2x4xf32>
}
func.func @reshape(%x: !frag.tile<4x8xf32>) -> (!frag.tile<4x8xf32>, !frag.tile<32xf32>) {
  %0 = frag.reshape %x : !frag.tile<4x8xf32> -> !frag.tile<2x16xf32>
  %1 = frag.reshape %0 : !frag.tile<2x16xf32> -> !frag.tile<4x8xf32>
  %2 = frag.reshape %0 : !frag.tile<2x16xf32> -> !frag.tile<32xf32>
  func.return %1, %2 : !frag.tile<4x8xf32>, !frag.tile<32xf32>
}
// Columns 2, 6 of the second tile: 4 + 2 * 1 = 6 and 4 + 2 * 3 = 10 of both, 8 of which the first has.
func.func @slice(%x: !frag.tile<4x8xf32>, %y: !frag.tile<4x8xf32>) -> (!frag.tile<2x2xf32>, !frag.tile<4x8xf32>, !frag.tile<4x2xf32>, !frag.tile<4x4xf32>) {
  %0 = frag.slice %x [0, 1] strides [1, 2] : !frag.tile<4x8xf32> -> !frag.tile<4x3xf32>
  %1 = frag.slice %0 [2, 0] strides [1, 2] : !frag.tile<4x3xf32> -> !frag.tile<2x2xf32>
  %2 = frag.concat %x, %y dim 1 : !frag.tile<4x8xf32>, !frag.tile<4x8xf32> -> !frag.tile<4x16xf32>
  %3 = frag.slice %2 [0, 8] : !frag.tile<4x16xf32> -> !frag.tile<4x8xf32>
  %4 = frag.slice %2 [0, 10] strides [1, 4] : !frag.tile<4x16xf32> -> !frag.tile<4x2xf32>
  %5 = frag.slice %2 [0, 6] : !frag.tile<4x16xf32> -> !frag.tile<4x4xf32>
  func.return %1, %3, %4, %5 : !frag.tile<2x2xf32>, !frag.tile<4x8xf32>, !frag.tile<4x2xf32>, !frag.tile<4x4xf32>
}
// Parts that stand behind each other; in the other order they do not.
func.func @concat(%x: !frag.tile<4x8xf32>) -> (!frag.tile<4x8xf32>, !frag.tile<4x8xf32>, !frag.tile<4x4xf32>) {
  %0 = frag.slice %x [0, 0] : !frag.tile<4x8xf32> -> !frag.tile<4x4xf32>
  %1 = frag.slice %x [0, 4] : !frag.tile<4x8xf32> -> !frag.tile<4x4xf32>
  %2 = frag.concat %0, %1 dim 1 : !frag.tile<4x4xf32>, !frag.tile<4x4xf32> -> !frag.tile<4x8xf32>
  %3 = frag.concat %1, %0 dim 1 : !frag.tile<4x4xf32>, !frag.tile<4x4xf32> -> !frag.tile<4x8xf32>
  %4 = frag.slice %x [0, 1] strides [1, 2] : !frag.tile<4x8xf32> -> !frag.tile<4x2xf32>
  %5 = frag.slice %x [0, 5] strides [1, 2] : !frag.tile<4x8xf32> -> !frag.tile<4x2xf32>
  %6 = frag.concat %4, %5 dim 1 : !frag.tile<4x2xf32>, !frag.tile<4x2xf32> -> !frag.tile<4x4xf32>
  func.return %2, %3, %6 : !frag.tile<4x8xf32>, !frag.tile<4x8xf32>, !frag.tile<4x4xf32>
}
func.func @split(%x: !frag.tile<8x2xf32>, %a: !frag.tile<8xf32>, %b: !frag.tile<8xf32>) -> (!frag.tile<8x2xf32>, !frag.tile<8x2xf32>, !frag.tile<8xf32>) {
  %0, %1 = frag.split %x : !frag.tile<8x2xf32> -> !frag.tile<8xf32>, !frag.tile<8xf32>
  %2 = frag.join %0, %1 : !frag.tile<8xf32>, !frag.tile<8xf32> -> !frag.tile<8x2xf32>
  %3 = frag.join %1, %0 : !frag.tile<8xf32>, !frag.tile<8xf32> -> !frag.tile<8x2xf32>
  %4 = frag.join %a, %b : !frag.tile<8xf32>, !frag.tile<8xf32> -> !frag.tile<8x2xf32>
  %5, %6 = frag.split %4 : !frag.tile<8x2xf32> -> !frag.tile<8xf32>, !frag.tile<8xf32>
  func.return %2, %3, %6 : !frag.tile<8x2xf32>, !frag.tile<8x2xf32>, !frag.tile<8xf32>
}
func.func @fill(%v: f32) -> !frag.tile<8x16xf32> {
  %0 = frag.fill %v : !frag.tile<4x8xf32>
  %1 = frag.transpose %0 [1, 0] : !frag.tile<4x8xf32> -> !frag.tile<8x4xf32>
  %2 = frag.reshape %1 : !frag.tile<8x4xf32> -> !frag.tile<32xf32>
  %3 = frag.slice %2 [3] : !frag.tile<32xf32> -> !frag.tile<8xf32>
  %4 = frag.broadcast %3 along 1 : !frag.tile<8xf32> -> !frag.tile<8x8xf32>
  %5 = frag.concat %4, %4 dim 1 : !frag.tile<8x8xf32>, !frag.tile<8x8xf32> -> !frag.tile<8x16xf32>
  func.return %5 : !frag.tile<8x16xf32>
}
