// RUN: -p frag-place
// -----
// There is no fourth dimension.
func.func @f() {
  %x = frag.grid_size w
  func.return
}
