// RUN: -p frag-place
// x, y and z of the grid.
func.func @f() attributes {frag.grid = #frag.grid<n by 128, 4, m by 2>} {
  %x = frag.block_id x
  %y = frag.block_id y
  %z = frag.block_id z
  func.return
}
