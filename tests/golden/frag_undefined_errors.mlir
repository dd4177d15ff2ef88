// RUN: -p frag-place{target=sm_90a}
// -----
// It is a tile.
func.func @f() {
  %u = frag.undefined : f32
  func.return
}
