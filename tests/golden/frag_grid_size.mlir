// RUN: -p frag-place
// The number of blocks along x, y and z of the grid.
func.func @f() attributes {frag.grid = #frag.grid<n by 128, 4, m by 2>} {
  %x = frag.grid_size x
  %y = frag.grid_size y
  %z = frag.grid_size z
  func.return
}
