// RUN: -p frag-place
// A group of copies.
func.func @f() {
  frag.commit
  frag.wait 0
  func.return
}
