// RUN: -p frag-place
// Two of four elements of A are kept; a nibble for every four says which.
func.func @f(%a: memref<16x16xf16>, %b: memref<32x8xf16>, %c: memref<16x8xf32>, %e: memref<16x8xui4>) {
  %ta = frag.load %a[0, 0] : memref<16x16xf16> -> !frag.tile<16x16xf16>
  %tb = frag.load %b[0, 0] : memref<32x8xf16> -> !frag.tile<32x8xf16>
  %tc = frag.load %c[0, 0] : memref<16x8xf32> -> !frag.tile<16x8xf32>
  %te = frag.load %e[0, 0] : memref<16x8xui4> -> !frag.tile<16x8xui4>
  %d = frag.mma_sparse %ta, %tb, %tc, %te : !frag.tile<16x16xf16>, !frag.tile<32x8xf16>, !frag.tile<16x8xf32>, !frag.tile<16x8xui4> -> !frag.tile<16x8xf32>
  func.return
}
