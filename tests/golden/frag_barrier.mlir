// RUN: -p frag-place
// Threads wait for each other; nothing to place.
func.func @f() {
  frag.barrier
  func.return
}
