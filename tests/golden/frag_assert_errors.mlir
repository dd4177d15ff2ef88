// RUN: -p frag-place
// -----
// No condition.
func.func @f(%t: !frag.tile<64xf32>) {
  frag.assert %t, "t" : !frag.tile<64xf32>
  func.return
}
// -----
// One condition, a tile of values.
func.func @f(%b: i1, %t: !frag.tile<64xf32>) {
  frag.assert %b, "t", %t : i1, !frag.tile<64xf32>
  func.return
}
// -----
// Another shape than the condition's.
func.func @f(%b: !frag.tile<64xi1>, %t: !frag.tile<32xf32>) {
  frag.assert %b, "t", %t : !frag.tile<64xi1>, !frag.tile<32xf32>
  func.return
}
