// RUN: 
// -----
// Shared memory.
func.func @f(%s: memref<4x64x64xf32, #frag.shared>, %end: index) {
  %0 = frag.head %s to %end : memref<4x64x64xf32, #frag.shared>
  func.return
}
// -----
// A tile.
func.func @f(%t: !frag.tile<64x64xf32>, %end: index) {
  %0 = frag.head %t to %end : !frag.tile<64x64xf32>
  func.return
}
// -----
// The generic form, with another result.
func.func @f(%c: memref<?x64xf32>, %end: index) {
  %0 = "frag.head"(%c, %end) : (memref<?x64xf32>, index) -> memref<?x?xf32>
  func.return
}
