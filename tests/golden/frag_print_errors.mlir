// RUN: -p frag-place
// -----
// Tiles of two shapes.
func.func @f(%t: !frag.tile<64xf32>, %u: !frag.tile<32xf32>) {
  frag.print "t", %t, %u : !frag.tile<64xf32>, !frag.tile<32xf32>
  func.return
}
// -----
// What printf does not know.
func.func @f(%t: !frag.tile<64xf8E4M3FN>) {
  frag.print "t", %t : !frag.tile<64xf8E4M3FN>
  func.return
}
// -----
// A text that ends too early.
func.func @f(%s: f32) {
  frag.print "a\00b", %s : f32
  func.return
}
// -----
// Memory is no value.
func.func @f(%m: memref<64xf32>) {
  frag.print "m", %m : memref<64xf32>
  func.return
}
