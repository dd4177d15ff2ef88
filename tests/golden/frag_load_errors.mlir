// RUN: -p frag-place
// -----
// Memory of another element type.
func.func @f(%a: memref<16x32xf32>) {
  %0 = frag.load %a[0, 0] : memref<16x32xf32> -> !frag.tile<16x32xf16>
  func.return
}
// -----
// Too few indices.
func.func @f(%a: memref<16x32xf32>) {
  %0 = frag.load %a[0] : memref<16x32xf32> -> !frag.tile<16x32xf32>
  func.return
}
// -----
// A matrix from a vector, which only a broadcast reads.
func.func @f(%a: memref<32xf32>) {
  %0 = frag.load %a[0] : memref<32xf32> -> !frag.tile<16x32xf32>
  func.return
}
// -----
// A broadcast from shared memory.
func.func @f() {
  %a = memref.alloc() : memref<1x32xf32, #frag.shared>
  %0 = frag.load %a[0, 0] broadcast : memref<1x32xf32, #frag.shared> -> !frag.tile<16x32xf32>
  func.return
}
// -----
// Four products at once, transposed.
func.func @f(%a: memref<8x4x4xf16>) {
  %0 = frag.load %a[0, 0, 0] transposed : memref<8x4x4xf16> -> !frag.tile<8x4x4xf16>
  func.return
}
