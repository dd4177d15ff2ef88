// RUN: -p frag-tile{target=sm_90a}
// Few tiles and a long K, memory for parts and no number: the cost model cuts sums, and the
// arguments say how much memory that takes.
func.func @cut(%a: memref<128x2048xf16>, %b: memref<2048x128xf16>, %c: memref<128x128xf16>, %p: memref<4x128x128xf32>, %n: memref<?x?xi32>) {
  frag.matmul %a, %b into %c through %p, %n : memref<128x2048xf16>, memref<2048x128xf16> into memref<128x128xf16> through memref<4x128x128xf32>, memref<?x?xi32>
  func.return
}
// Many tiles, or a short K: sums stay whole.
func.func @whole(%a: memref<128x64xf16>, %b: memref<64x128xf16>, %c: memref<128x128xf16>, %p: memref<4x128x128xf32>, %n: memref<?x?xi32>) {
  frag.matmul %a, %b into %c through %p, %n : memref<128x64xf16>, memref<64x128xf16> into memref<128x128xf16> through memref<4x128x128xf32>, memref<?x?xi32>
  func.return
}
