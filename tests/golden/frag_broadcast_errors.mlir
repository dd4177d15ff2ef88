// RUN: -p frag-place
// -----
// The other dimension is new.
func.func @f(%x: memref<64xf32>) {
  %0 = frag.load %x[0] : memref<64xf32> -> !frag.tile<64xf32>
  %1 = frag.broadcast %0 along 1 : !frag.tile<64xf32> -> !frag.tile<8x64xf32>
  func.return
}
// -----
// No such dimension.
func.func @f(%x: memref<64xf32>) {
  %0 = frag.load %x[0] : memref<64xf32> -> !frag.tile<64xf32>
  %1 = frag.broadcast %0 along 2 : !frag.tile<64xf32> -> !frag.tile<64xf32>
  func.return
}
// -----
// Elements stay what they are.
func.func @f(%x: memref<64xf32>) {
  %0 = frag.load %x[0] : memref<64xf32> -> !frag.tile<64xf32>
  %1 = frag.broadcast %0 along 0 : !frag.tile<64xf32> -> !frag.tile<8x64xf16>
  func.return
}
