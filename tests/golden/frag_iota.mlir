// RUN: -p frag-place
// Columns of an accumulator; and places in a layout of the compiler's choice, in the general form.
func.func @a(%y: memref<16x8xi32>, %z: memref<64xi32>) {
  %0 = frag.iota dim 1 : !frag.tile<16x8xi32, #frag.mma<m16n8k16.f16, c>>
  frag.store %0, %y[0, 0] : !frag.tile<16x8xi32, #frag.mma<m16n8k16.f16, c>>, memref<16x8xi32>
  %1 = "frag.iota"() <{dim = 0 : i64}> : () -> !frag.tile<64xi32>
  frag.store %1, %z[0] : !frag.tile<64xi32>, memref<64xi32>
  func.return
}
