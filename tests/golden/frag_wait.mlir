// RUN: -p frag-place
// All but the two newest groups; all.
func.func @f() {
  frag.wait 2
  frag.wait 0
  func.return
}
