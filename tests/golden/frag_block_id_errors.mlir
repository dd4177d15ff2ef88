// RUN: -p frag-place
// -----
// There is no fourth dimension.
func.func @f() {
  %x = frag.block_id w
  func.return
}
// -----
// A grid has one to three extents.
func.func @f() attributes {frag.grid = #frag.grid<1, 2, 3, 4>} {
  %x = frag.block_id x
  func.return
}
// -----
// A divisor is positive.
func.func @f() attributes {frag.grid = #frag.grid<n by 0>} {
  %x = frag.block_id x
  func.return
}
