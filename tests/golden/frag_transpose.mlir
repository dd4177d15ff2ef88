// RUN: -p frag-place
// The layout turns with the tile: nothing is moved.
func.func @f(%a: memref<16x8xf32>, %d: memref<8x16xf32>) {
  %0 = frag.load %a[0, 0] : memref<16x8xf32> -> !frag.tile<16x8xf32, #frag.mma<m16n8k16.f16, c>>
  %1 = frag.transpose %0 [1, 0] : !frag.tile<16x8xf32, #frag.mma<m16n8k16.f16, c>> -> !frag.tile<8x16xf32>
  frag.store %1, %d[0, 0] : !frag.tile<8x16xf32>, memref<8x16xf32>
  func.return
}
// Dimension i of the result is dimension permutation[i] of the source; from the result to the source.
func.func @g(%a: memref<2x4x32xf16>, %d: memref<32x2x4xf16>) {
  %0 = frag.load %a[0, 0, 0] : memref<2x4x32xf16> -> !frag.tile<2x4x32xf16>
  %1 = frag.transpose %0 [2, 0, 1] : !frag.tile<2x4x32xf16> -> !frag.tile<32x2x4xf16, #frag.layout<"lane [32:(1,0,0)] element [4:(0,0,1) 2:(0,1,0)]">>
  frag.store %1, %d[0, 0, 0] : !frag.tile<32x2x4xf16, #frag.layout<"lane [32:(1,0,0)] element [4:(0,0,1) 2:(0,1,0)]">>, memref<32x2x4xf16>
  func.return
}
