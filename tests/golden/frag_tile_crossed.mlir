// RUN: -p frag-tile{target=sm_90a},frag-pipeline{target=sm_90a},frag-raster{target=sm_90a},frag-prefetch
// B lies across K: it is read into registers, and C^T = B^T A^T is formed.
func.func @turned(%a: memref<128x64xsi8>, %b: memref<64x128xsi8>, %c: memref<128x128xi32>) {
  frag.matmul %a, %b into %c {tile = array<i64: 128, 128, 64>, stages = 1 : i64}
      : memref<128x64xsi8>, memref<64x128xsi8> into memref<128x128xi32>
  func.return
}
// Both lie across K: A is transposed in shared memory as well.
func.func @both(%a: memref<32x128xtf32>, %b: memref<32x128xtf32>, %c: memref<128x128xf32>) {
  frag.matmul %a transposed, %b into %c {tile = array<i64: 128, 128, 32>, stages = 1 : i64}
      : memref<32x128xtf32>, memref<32x128xtf32> into memref<128x128xf32>
  func.return
}
