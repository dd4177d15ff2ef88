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
// One dimension, transposed.
func.func @f(%a: memref<32xf16>) {
  %0 = frag.load %a[0] transposed : memref<32xf16> -> !frag.tile<32xf16>
  func.return
}
// -----
// Another value outside where there is no outside.
func.func @f(%a: memref<16x32xf32>, %x: f32) {
  %0 = frag.load %a[0, 0] other %x : memref<16x32xf32> -> !frag.tile<16x32xf32>
  func.return
}
// -----
// Half a byte as the other value.
func.func @f(%a: memref<16x32xsi4>, %x: si4) {
  %0 = frag.load %a[0, 0] masked other %x : memref<16x32xsi4> -> !frag.tile<16x32xsi4>
  func.return
}
// -----
// A scalar of another type.
func.func @f(%a: memref<16x32xf32>, %x: f16) {
  %0 = "frag.load"(%a, %x) <{static_indices = array<i64: 0, 0>, masked, operandSegmentSizes = array<i32: 1, 0, 1>}> : (memref<16x32xf32>, f16) -> !frag.tile<16x32xf32>
  func.return
}
