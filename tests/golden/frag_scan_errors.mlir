// RUN: -p frag-place
// -----
// Places are no scan.
func.func @f(%x: memref<8x32xf32>) {
  %0 = frag.load %x[0, 0] : memref<8x32xf32> -> !frag.tile<8x32xf32>
  %1 = frag.scan argmax dim 1 %0 : !frag.tile<8x32xf32>
  func.return
}
// -----
// No such dimension.
func.func @f(%x: memref<8x32xf32>) {
  %0 = frag.load %x[0, 0] : memref<8x32xf32> -> !frag.tile<8x32xf32>
  %1 = frag.scan add dim 2 %0 : !frag.tile<8x32xf32>
  func.return
}
// -----
// Floats have no bits to combine.
func.func @f(%x: memref<8x32xf32>) {
  %0 = frag.load %x[0, 0] : memref<8x32xf32> -> !frag.tile<8x32xf32>
  %1 = frag.scan xor dim 1 %0 : !frag.tile<8x32xf32>
  func.return
}
// -----
// No arithmetic in 8 bits.
func.func @f(%x: memref<8x32xui8>) {
  %0 = frag.load %x[0, 0] : memref<8x32xui8> -> !frag.tile<8x32xui8>
  %1 = frag.scan add dim 1 %0 : !frag.tile<8x32xui8>
  func.return
}
// -----
// The result is a tile of the same type.
func.func @f(%x: memref<8x32xf32>) {
  %0 = frag.load %x[0, 0] : memref<8x32xf32> -> !frag.tile<8x32xf32>
  %1 = "frag.scan"(%0) <{kind = "add", dim = 1 : i64}> : (!frag.tile<8x32xf32>) -> !frag.tile<8xf32>
  func.return
}
// -----
// Of memory there is none.
func.func @f(%x: memref<8x32xf32>) {
  %1 = frag.scan add dim 1 %x : memref<8x32xf32>
  func.return
}
