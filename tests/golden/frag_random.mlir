// RUN: -p frag-place
// Offsets are a counter's lowest word; a whole counter in the general form, in a layout of its own.
func.func @r(%seed: i64, %y: memref<64xi32>) {
  %at = frag.iota dim 0 : !frag.tile<64xi32>
  %0, %1, %2, %3 = frag.random %seed, %at : i64, !frag.tile<64xi32>
  frag.store %0, %y[0] : !frag.tile<64xi32>, memref<64xi32>
  func.return
}
func.func @s(%seed: i32, %y: memref<16x8xi32>) {
  %r = frag.iota dim 0 : !frag.tile<16x8xi32, #frag.mma<m16n8k16.f16, c>>
  %c = frag.iota dim 1 : !frag.tile<16x8xi32, #frag.mma<m16n8k16.f16, c>>
  %0, %1, %2, %3 = "frag.random"(%seed, %r, %c)
    : (i32, !frag.tile<16x8xi32, #frag.mma<m16n8k16.f16, c>>, !frag.tile<16x8xi32, #frag.mma<m16n8k16.f16, c>>)
    -> (!frag.tile<16x8xi32, #frag.mma<m16n8k16.f16, c>>, !frag.tile<16x8xi32, #frag.mma<m16n8k16.f16, c>>, !frag.tile<16x8xi32, #frag.mma<m16n8k16.f16, c>>, !frag.tile<16x8xi32, #frag.mma<m16n8k16.f16, c>>)
  frag.store %3, %y[0, 0] : !frag.tile<16x8xi32, #frag.mma<m16n8k16.f16, c>>, memref<16x8xi32>
  func.return
}
