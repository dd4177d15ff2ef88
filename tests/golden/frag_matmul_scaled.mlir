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
// A batch: a scale for each row of each matrix of A, one for each matrix of B.
func.func @batch(%a: memref<?x64x32xf8E4M3FN>, %b: memref<?x96x32xf8E5M2>, %c: memref<?x64x96xbf16>, %x: memref<?x64xf32>, %y: memref<?x1xf32>) {
  frag.matmul %a scaled %x, %b transposed scaled %y into %c : memref<?x64x32xf8E4M3FN> scaled memref<?x64xf32>, memref<?x96x32xf8E5M2> scaled memref<?x1xf32> into memref<?x64x96xbf16>
  func.return
}
// Blocks of two dimensions of matrices; B has scales for each along one of them, A the same for all.
func.func @blocks_of_a_batch(%a: memref<2x3x64x300xf8E4M3FN>, %b: memref<200x300xf8E4M3FN>, %c: memref<2x3x64x200xbf16>, %x: memref<64x3xf32>, %y: memref<1x3x2x3xf32>) {
  frag.matmul %a scaled %x by [1, 128], %b transposed scaled %y transposed by [128, 128] into %c : memref<2x3x64x300xf8E4M3FN> scaled memref<64x3xf32>, memref<200x300xf8E4M3FN> scaled memref<1x3x2x3xf32> into memref<2x3x64x200xbf16>
  func.return
}
// Groups of rows, each with a matrix of B and its scales.
func.func @groups(%a: memref<?x300xf8E4M3FN>, %b: memref<8x200x300xf8E4M3FN>, %c: memref<?x200xbf16>, %ends: memref<8xi32>, %x: memref<?x3xf32>, %y: memref<8x2x3xf32>) {
  frag.matmul %a scaled %x by [1, 128], %b transposed scaled %y transposed by [128, 128] into %c groups %ends : memref<?x300xf8E4M3FN> scaled memref<?x3xf32>, memref<8x200x300xf8E4M3FN> scaled memref<8x2x3xf32> into memref<?x200xbf16> groups memref<8xi32>
  func.return
}
// One number a group of rows, and one a group's matrix.
func.func @numbers_of_groups(%a: memref<?x300xf8E4M3FN>, %b: memref<8x200x300xf8E4M3FN>, %c: memref<?x200xbf16>, %ends: memref<8xi32>, %x: memref<8x1xf32>, %y: memref<8x1xf32>) {
  frag.matmul %a scaled %x, %b transposed scaled %y into %c groups %ends : memref<?x300xf8E4M3FN> scaled memref<8x1xf32>, memref<8x200x300xf8E4M3FN> scaled memref<8x1xf32> into memref<?x200xbf16> groups memref<8xi32>
  func.return
}
// Parts, each scaled.
func.func @parts(%a: memref<?x?xf16>, %b: memref<?x?xf16>, %c: memref<?x?xf32>, %x: f32, %p: memref<2x?x?xf32>, %n: memref<?x?xi32>) {
  frag.matmul %a scaled %x, %b into %c through %p, %n {promote = 64 : i64, split_k = 2 : i64} : memref<?x?xf16> scaled f32, memref<?x?xf16> into memref<?x?xf32> through memref<2x?x?xf32>, memref<?x?xi32>
  func.return
}
