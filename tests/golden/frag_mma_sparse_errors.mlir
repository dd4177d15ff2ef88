// RUN: -p frag-place
// -----
// A is packed: it has half of B's rows.
func.func @f(%a: memref<16x32xf16>, %b: memref<32x8xf16>, %c: memref<16x8xf32>, %e: memref<16x8xui4>) {
  %ta = frag.load %a[0, 0] : memref<16x32xf16> -> !frag.tile<16x32xf16>
  %tb = frag.load %b[0, 0] : memref<32x8xf16> -> !frag.tile<32x8xf16>
  %tc = frag.load %c[0, 0] : memref<16x8xf32> -> !frag.tile<16x8xf32>
  %te = frag.load %e[0, 0] : memref<16x8xui4> -> !frag.tile<16x8xui4>
  %d = frag.mma_sparse %ta, %tb, %tc, %te : !frag.tile<16x32xf16>, !frag.tile<32x8xf16>, !frag.tile<16x8xf32>, !frag.tile<16x8xui4> -> !frag.tile<16x8xf32>
  func.return
}
// -----
// A nibble for every four elements of K.
func.func @f(%a: memref<16x16xf16>, %b: memref<32x8xf16>, %c: memref<16x8xf32>, %e: memref<16x16xui4>) {
  %ta = frag.load %a[0, 0] : memref<16x16xf16> -> !frag.tile<16x16xf16>
  %tb = frag.load %b[0, 0] : memref<32x8xf16> -> !frag.tile<32x8xf16>
  %tc = frag.load %c[0, 0] : memref<16x8xf32> -> !frag.tile<16x8xf32>
  %te = frag.load %e[0, 0] : memref<16x16xui4> -> !frag.tile<16x16xui4>
  %d = frag.mma_sparse %ta, %tb, %tc, %te : !frag.tile<16x16xf16>, !frag.tile<32x8xf16>, !frag.tile<16x8xf32>, !frag.tile<16x16xui4> -> !frag.tile<16x8xf32>
  func.return
}
// -----
// Metadata are nibbles.
func.func @f(%a: memref<16x16xf16>, %b: memref<32x8xf16>, %c: memref<16x8xf32>, %e: memref<16x8xui8>) {
  %ta = frag.load %a[0, 0] : memref<16x16xf16> -> !frag.tile<16x16xf16>
  %tb = frag.load %b[0, 0] : memref<32x8xf16> -> !frag.tile<32x8xf16>
  %tc = frag.load %c[0, 0] : memref<16x8xf32> -> !frag.tile<16x8xf32>
  %te = frag.load %e[0, 0] : memref<16x8xui8> -> !frag.tile<16x8xui8>
  %d = frag.mma_sparse %ta, %tb, %tc, %te : !frag.tile<16x16xf16>, !frag.tile<32x8xf16>, !frag.tile<16x8xf32>, !frag.tile<16x8xui8> -> !frag.tile<16x8xf32>
  func.return
}
// -----
// No sparse product of f64.
func.func @f(%a: memref<16x16xf64>, %b: memref<32x8xf64>, %c: memref<16x8xf64>, %e: memref<16x8xui4>) {
  %ta = frag.load %a[0, 0] : memref<16x16xf64> -> !frag.tile<16x16xf64>
  %tb = frag.load %b[0, 0] : memref<32x8xf64> -> !frag.tile<32x8xf64>
  %tc = frag.load %c[0, 0] : memref<16x8xf64> -> !frag.tile<16x8xf64>
  %te = frag.load %e[0, 0] : memref<16x8xui4> -> !frag.tile<16x8xui4>
  %d = frag.mma_sparse %ta, %tb, %tc, %te : !frag.tile<16x16xf64>, !frag.tile<32x8xf64>, !frag.tile<16x8xf64>, !frag.tile<16x8xui4> -> !frag.tile<16x8xf64>
  func.return
}
// -----
// M of C.
func.func @f(%a: memref<16x16xf16>, %b: memref<32x8xf16>, %c: memref<32x8xf32>, %e: memref<16x8xui4>) {
  %ta = frag.load %a[0, 0] : memref<16x16xf16> -> !frag.tile<16x16xf16>
  %tb = frag.load %b[0, 0] : memref<32x8xf16> -> !frag.tile<32x8xf16>
  %tc = frag.load %c[0, 0] : memref<32x8xf32> -> !frag.tile<32x8xf32>
  %te = frag.load %e[0, 0] : memref<16x8xui4> -> !frag.tile<16x8xui4>
  %d = frag.mma_sparse %ta, %tb, %tc, %te : !frag.tile<16x16xf16>, !frag.tile<32x8xf16>, !frag.tile<32x8xf32>, !frag.tile<16x8xui4> -> !frag.tile<32x8xf32>
  func.return
}
// -----
// A shape that no instruction divides.
func.func @f(%a: memref<8x16xf16>, %b: memref<32x8xf16>, %c: memref<8x8xf32>, %e: memref<8x8xui4>) {
  %ta = frag.load %a[0, 0] : memref<8x16xf16> -> !frag.tile<8x16xf16>
  %tb = frag.load %b[0, 0] : memref<32x8xf16> -> !frag.tile<32x8xf16>
  %tc = frag.load %c[0, 0] : memref<8x8xf32> -> !frag.tile<8x8xf32>
  %te = frag.load %e[0, 0] : memref<8x8xui4> -> !frag.tile<8x8xui4>
  %d = frag.mma_sparse %ta, %tb, %tc, %te : !frag.tile<8x16xf16>, !frag.tile<32x8xf16>, !frag.tile<8x8xf32>, !frag.tile<8x8xui4> -> !frag.tile<8x8xf32>
  func.return
}
