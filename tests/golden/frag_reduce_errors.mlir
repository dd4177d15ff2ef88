// RUN: -p frag-place
// -----
// No word for it.
func.func @f(%x: memref<8x32xf32>) {
  %0 = frag.load %x[0, 0] : memref<8x32xf32> -> !frag.tile<8x32xf32>
  %1 = frag.reduce mean dim 1 %0 : !frag.tile<8x32xf32> -> !frag.tile<8xf32>
  func.return
}
// -----
// No such dimension.
func.func @f(%x: memref<8x32xf32>) {
  %0 = frag.load %x[0, 0] : memref<8x32xf32> -> !frag.tile<8x32xf32>
  %1 = frag.reduce add dim 2 %0 : !frag.tile<8x32xf32> -> !frag.tile<8xf32>
  func.return
}
// -----
// Bits of floats are not combined.
func.func @f(%x: memref<8x32xf32>) {
  %0 = frag.load %x[0, 0] : memref<8x32xf32> -> !frag.tile<8x32xf32>
  %1 = frag.reduce xor dim 1 %0 : !frag.tile<8x32xf32> -> !frag.tile<8xf32>
  func.return
}
// -----
// No arithmetic in 8 bits.
func.func @f(%x: memref<8x32xui8>) {
  %0 = frag.load %x[0, 0] : memref<8x32xui8> -> !frag.tile<8x32xui8>
  %1 = frag.reduce add dim 1 %0 : !frag.tile<8x32xui8> -> !frag.tile<8xui8>
  func.return
}
// -----
// The other dimension goes.
func.func @f(%x: memref<8x32xf32>) {
  %0 = frag.load %x[0, 0] : memref<8x32xf32> -> !frag.tile<8x32xf32>
  %1 = frag.reduce add dim 1 %0 : !frag.tile<8x32xf32> -> !frag.tile<32xf32>
  func.return
}
// -----
// Places are i32.
func.func @f(%x: memref<8x32xf32>) {
  %0 = frag.load %x[0, 0] : memref<8x32xf32> -> !frag.tile<8x32xf32>
  %1 = frag.reduce argmax dim 1 %0 : !frag.tile<8x32xf32> -> !frag.tile<8xf32>
  func.return
}
// -----
// Of one dimension a number is left.
func.func @f(%x: memref<32xf32>) {
  %0 = frag.load %x[0] : memref<32xf32> -> !frag.tile<32xf32>
  %1 = frag.reduce add dim 0 %0 : !frag.tile<32xf32> -> !frag.tile<1xf32>
  func.return
}
