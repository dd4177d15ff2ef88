// RUN: -p frag-place
// -----
// No such dimension.
func.func @f() {
  %0 = frag.iota dim 2 : !frag.tile<16x8xi32>
  func.return
}
// -----
// Places are i32.
func.func @f() {
  %0 = frag.iota dim 0 : !frag.tile<16x8xf32>
  func.return
}
