// RUN: -p frag-tile{target=sm_90a}
// -----
// Counts for one tile where there are several.
func.func @f(%a: memref<128x2048xf16>, %b: memref<2048x128xf16>, %c: memref<128x128xf16>, %p: memref<4x128x128xf32>, %n: memref<1x1xi32>) {
  frag.matmul %a, %b into %c through %p, %n {tile = array<i64: 64, 64, 64>, split_k = 4 : i64} : memref<128x2048xf16>, memref<2048x128xf16> into memref<128x128xf16> through memref<4x128x128xf32>, memref<1x1xi32>
  func.return
}
