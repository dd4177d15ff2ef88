// RUN: -p frag-place
// Two halves of A of a product, each loaded in its layout.
func.func @f(%a: memref<16x8xf16>, %b: memref<16x8xf16>, %w: memref<16x8xf16>, %d: memref<16x8xf32>) {
  %0 = frag.load %a[0, 0] : memref<16x8xf16> -> !frag.tile<16x8xf16>
  %1 = frag.load %b[0, 0] : memref<16x8xf16> -> !frag.tile<16x8xf16>
  %2 = frag.concat %0, %1 dim 1 : !frag.tile<16x8xf16>, !frag.tile<16x8xf16> -> !frag.tile<16x16xf16>
  %3 = frag.load %w[0, 0] : memref<16x8xf16> -> !frag.tile<16x8xf16>
  %zero = arith.constant 0.0 : f32
  %4 = frag.fill %zero : !frag.tile<16x8xf32>
  %5 = frag.mma %2, %3, %4 : !frag.tile<16x16xf16>, !frag.tile<16x8xf16>, !frag.tile<16x8xf32> -> !frag.tile<16x8xf32>
  frag.store %5, %d[0, 0] : !frag.tile<16x8xf32>, memref<16x8xf32>
  func.return
}
