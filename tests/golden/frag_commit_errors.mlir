// RUN: -p frag-place
// -----
// It takes nothing.
func.func @f() {
  frag.commit 1
  func.return
}
