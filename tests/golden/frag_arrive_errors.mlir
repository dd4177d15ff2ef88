// RUN: 
// -----
// One index a dimension.
func.func @f(%n: memref<?x?xi32>, %parts: index) {
  %0 = frag.arrive %n[0] of %parts : memref<?x?xi32>
  func.return
}
// -----
// Counted in floats.
func.func @f(%n: memref<4xf32>, %parts: index) {
  %0 = frag.arrive %n[0] of %parts : memref<4xf32>
  func.return
}
// -----
// Shared memory is one block's.
func.func @f(%n: memref<4x4xi32, #frag.shared>, %parts: index) {
  %0 = frag.arrive %n[0, 0] of %parts : memref<4x4xi32, #frag.shared>
  func.return
}
// -----
// Behind the end.
func.func @f(%n: memref<4xi32>, %parts: index) {
  %0 = frag.arrive %n[4] of %parts : memref<4xi32>
  func.return
}
