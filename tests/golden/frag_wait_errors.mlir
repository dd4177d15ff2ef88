// RUN: -p frag-place
// -----
// A number of groups.
func.func @f() {
  frag.wait -1
  func.return
}
// -----
// There is one number.
func.func @f() {
  frag.wait
  func.return
}
