// RUN: -p frag-place
// Real and imaginary parts that lie side by side.
func.func @f(%a: memref<64x2xf32>, %d: memref<64xf32>, %e: memref<64xf32>) {
  %0 = frag.load %a[0, 0] : memref<64x2xf32> -> !frag.tile<64x2xf32>
  %1, %2 = frag.split %0 : !frag.tile<64x2xf32> -> !frag.tile<64xf32>, !frag.tile<64xf32>
  frag.store %1, %d[0] : !frag.tile<64xf32>, memref<64xf32>
  frag.store %2, %e[0] : !frag.tile<64xf32>, memref<64xf32>
  func.return
}
