// RUN: -p frag-place
// -----
// It takes nothing.
func.func @f(%x: index) {
  frag.barrier %x : index
  func.return
}
