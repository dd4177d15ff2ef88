// RUN: -p frag-place
// -----
// Memory of another element type.
func.func @f(%x: f32, %d: memref<16x32xf16>) {
  %0 = frag.fill %x : !frag.tile<16x32xf32>
  frag.store %0, %d[0, 0] : !frag.tile<16x32xf32>, memref<16x32xf16>
  func.return
}
// -----
// Too many indices.
func.func @f(%x: f32, %d: memref<16x32xf32>) {
  %0 = frag.fill %x : !frag.tile<16x32xf32>
  frag.store %0, %d[0, 0, 0] : !frag.tile<16x32xf32>, memref<16x32xf32>
  func.return
}
// -----
// A vector.
func.func @f(%x: f32, %d: memref<32xf32>) {
  %0 = frag.fill %x : !frag.tile<16x32xf32>
  frag.store %0, %d[0] : !frag.tile<16x32xf32>, memref<32xf32>
  func.return
}
// -----
// What is stored is no tile.
func.func @f(%x: f32, %d: memref<16x32xf32>) {
  frag.store %x, %d[0, 0] : f32, memref<16x32xf32>
  func.return
}
