// RUN: 
// Scales as they are written; tests/golden/frag_tile_scaled.mlir shows what frag-tile makes of them.
func.func @whole(%a: memref<?x?xf16>, %b: memref<?x?xf16>, %c: memref<?x?xf32>, %x: f32, %y: memref<1xf32>) {
  frag.matmul %a scaled %x, %b scaled %y into %c : memref<?x?xf16> scaled f32, memref<?x?xf16> scaled memref<1xf32> into memref<?x?xf32>
  func.return
}
// A scale a row of A, and one a column of B.
func.func @rows(%a: memref<64x32xf8E4M3FN>, %b: memref<96x32xf8E5M2>, %c: memref<64x96xbf16>, %x: memref<64xf32>, %y: memref<96xf32>) {
  frag.matmul %a scaled %x, %b transposed scaled %y into %c : memref<64x32xf8E4M3FN> scaled memref<64xf32>, memref<96x32xf8E5M2> scaled memref<96xf32> into memref<64x96xbf16>
  func.return
}
// A scale for a block, which changes along K.
func.func @blocks(%a: memref<64x300xf8E4M3FN>, %b: memref<200x300xf8E4M3FN>, %c: memref<64x200xbf16>, %x: memref<64x3xf32>, %y: memref<2x3xf32>) {
  frag.matmul %a scaled %x by [1, 128], %b transposed scaled %y transposed by [128, 128] into %c : memref<64x300xf8E4M3FN> scaled memref<64x3xf32>, memref<200x300xf8E4M3FN> scaled memref<2x3xf32> into memref<64x200xbf16>
  func.return
}
// Partial sums of 64 of K; A's scales the other way round in memory; only one operand has some.
func.func @partial(%a: memref<?x?xf8E4M3FN>, %b: memref<?x?xf8E4M3FN>, %c: memref<?x?xf32>, %x: memref<?x?xf32>) {
  frag.matmul %a scaled %x transposed by [1, 128], %b into %c {promote = 64 : i64} : memref<?x?xf8E4M3FN> scaled memref<?x?xf32>, memref<?x?xf8E4M3FN> into memref<?x?xf32>
  func.return
}
