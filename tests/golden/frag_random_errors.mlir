// RUN: -p frag-place
// -----
// A counter of floats.
func.func @f(%s: i32, %t: !frag.tile<64xf32>) {
  %0, %1, %2, %3 = frag.random %s, %t : i32, !frag.tile<64xf32>
  func.return
}
// -----
// A seed of 16 bits.
func.func @f(%s: i16, %t: !frag.tile<64xi32>) {
  %0, %1, %2, %3 = frag.random %s, %t : i16, !frag.tile<64xi32>
  func.return
}
// -----
// Words of other shapes.
func.func @f(%s: i32, %t: !frag.tile<64xi32>, %u: !frag.tile<32xi32>) {
  %0, %1, %2, %3 = frag.random %s, %t, %u : i32, !frag.tile<64xi32>, !frag.tile<32xi32>
  func.return
}
// -----
// Too many words.
func.func @f(%s: i32, %t: !frag.tile<64xi32>) {
  %0, %1, %2, %3 = frag.random %s, %t, %t, %t, %t, %t : i32, !frag.tile<64xi32>, !frag.tile<64xi32>, !frag.tile<64xi32>, !frag.tile<64xi32>, !frag.tile<64xi32>
  func.return
}
