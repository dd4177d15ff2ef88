// RUN: -p frag-place{target=sm_90a}
// -----
// It is a tile.
func.func @f(%x: f32) {
  %u = frag.in_flight %x : f32 -> !frag.in_flight<!frag.tile<64x8xf32>>
  func.return
}
// -----
// Of the same shape.
func.func @f(%x: f32) {
  %c = frag.fill %x : !frag.tile<64x16xf32>
  %u = frag.in_flight %c : !frag.tile<64x16xf32> -> !frag.in_flight<!frag.tile<64x8xf32>>
  func.return
}
