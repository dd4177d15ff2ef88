// RUN: -p frag-tile{target=sm_90a}
// -----
// Scales are f32.
func.func @f(%a: memref<64x256xf8E4M3FN>, %b: memref<256x96xf8E4M3FN>, %c: memref<64x96xf32>, %x: memref<64xf16>) {
  frag.matmul %a scaled %x, %b into %c : memref<64x256xf8E4M3FN> scaled memref<64xf16>, memref<256x96xf8E4M3FN> into memref<64x96xf32>
  func.return
}
// -----
// Two dimensions are of blocks.
func.func @f(%a: memref<64x256xf8E4M3FN>, %b: memref<256x96xf8E4M3FN>, %c: memref<64x96xf32>, %x: memref<64x2xf32>) {
  frag.matmul %a scaled %x, %b into %c : memref<64x256xf8E4M3FN> scaled memref<64x2xf32>, memref<256x96xf8E4M3FN> into memref<64x96xf32>
  func.return
}
// -----
// Blocks have two dimensions.
func.func @f(%a: memref<64x256xf8E4M3FN>, %b: memref<256x96xf8E4M3FN>, %c: memref<64x96xf32>, %x: memref<64xf32>) {
  frag.matmul %a scaled %x by [1, 128], %b into %c : memref<64x256xf8E4M3FN> scaled memref<64xf32>, memref<256x96xf8E4M3FN> into memref<64x96xf32>
  func.return
}
// -----
// A block has two extents.
func.func @f(%a: memref<64x256xf8E4M3FN>, %b: memref<256x96xf8E4M3FN>, %c: memref<64x96xf32>, %x: memref<64x2xf32>) {
  frag.matmul %a scaled %x by [128], %b into %c : memref<64x256xf8E4M3FN> scaled memref<64x2xf32>, memref<256x96xf8E4M3FN> into memref<64x96xf32>
  func.return
}
// -----
// A block is not empty.
func.func @f(%a: memref<64x256xf8E4M3FN>, %b: memref<256x96xf8E4M3FN>, %c: memref<64x96xf32>, %x: memref<2x1xf32>) {
  frag.matmul %a, %b scaled %x by [128, 0] into %c : memref<64x256xf8E4M3FN>, memref<256x96xf8E4M3FN> scaled memref<2x1xf32> into memref<64x96xf32>
  func.return
}
// -----
// Three dimensions.
func.func @f(%a: memref<64x256xf8E4M3FN>, %b: memref<256x96xf8E4M3FN>, %c: memref<64x96xf32>, %x: memref<64x2x1xf32>) {
  frag.matmul %a scaled %x by [1, 128], %b into %c : memref<64x256xf8E4M3FN> scaled memref<64x2x1xf32>, memref<256x96xf8E4M3FN> into memref<64x96xf32>
  func.return
}
// -----
// Not as many as rows.
func.func @f(%a: memref<64x256xf8E4M3FN>, %b: memref<256x96xf8E4M3FN>, %c: memref<64x96xf32>, %x: memref<96xf32>) {
  frag.matmul %a scaled %x, %b into %c : memref<64x256xf8E4M3FN> scaled memref<96xf32>, memref<256x96xf8E4M3FN> into memref<64x96xf32>
  func.return
}
// -----
// Not as many as blocks.
func.func @f(%a: memref<64x256xf8E4M3FN>, %b: memref<256x96xf8E4M3FN>, %c: memref<64x96xf32>, %x: memref<64x3xf32>) {
  frag.matmul %a scaled %x by [1, 128], %b into %c : memref<64x256xf8E4M3FN> scaled memref<64x3xf32>, memref<256x96xf8E4M3FN> into memref<64x96xf32>
  func.return
}
// -----
// The other way round.
func.func @f(%a: memref<64x256xf8E4M3FN>, %b: memref<256x96xf8E4M3FN>, %c: memref<64x96xf32>, %x: memref<2x64xf32>) {
  frag.matmul %a scaled %x by [1, 128], %b into %c : memref<64x256xf8E4M3FN> scaled memref<2x64xf32>, memref<256x96xf8E4M3FN> into memref<64x96xf32>
  func.return
}
// -----
// Blocks of B are counted as K x N.
func.func @f(%a: memref<64x256xf8E4M3FN>, %b: memref<256x96xf8E4M3FN>, %c: memref<64x96xf32>, %x: memref<1x2xf32>) {
  frag.matmul %a, %b scaled %x by [128, 128] into %c : memref<64x256xf8E4M3FN>, memref<256x96xf8E4M3FN> scaled memref<1x2xf32> into memref<64x96xf32>
  func.return
}
// -----
// A vector has no other way round.
func.func @f(%a: memref<64x256xf8E4M3FN>, %b: memref<256x96xf8E4M3FN>, %c: memref<64x96xf32>, %x: memref<64xf32>) {
  frag.matmul %a scaled %x transposed, %b into %c : memref<64x256xf8E4M3FN> scaled memref<64xf32>, memref<256x96xf8E4M3FN> into memref<64x96xf32>
  func.return
}
// -----
// No scales to be of blocks.
func.func @f(%a: memref<64x256xf8E4M3FN>, %b: memref<256x96xf8E4M3FN>, %c: memref<64x96xf32>) {
  frag.matmul %a by [1, 128], %b into %c : memref<64x256xf8E4M3FN>, memref<256x96xf8E4M3FN> into memref<64x96xf32>
  func.return
}
// -----
// No scales to be transposed.
func.func @f(%a: memref<64x256xf8E4M3FN>, %b: memref<96x256xf8E4M3FN>, %c: memref<64x96xf32>) {
  frag.matmul %a, %b transposed transposed into %c : memref<64x256xf8E4M3FN>, memref<96x256xf8E4M3FN> into memref<64x96xf32>
  func.return
}
// -----
// Scales that change within a partial sum.
func.func @f(%a: memref<64x256xf8E4M3FN>, %b: memref<256x96xf8E4M3FN>, %c: memref<64x96xf32>, %x: memref<64x4xf32>) {
  frag.matmul %a scaled %x by [1, 64], %b into %c {promote = 128 : i64} : memref<64x256xf8E4M3FN> scaled memref<64x4xf32>, memref<256x96xf8E4M3FN> into memref<64x96xf32>
  func.return
}
// -----
// Nothing is promoted every zero.
func.func @f(%a: memref<64x256xf8E4M3FN>, %b: memref<256x96xf8E4M3FN>, %c: memref<64x96xf32>) {
  frag.matmul %a, %b into %c {promote = 0 : i64} : memref<64x256xf8E4M3FN>, memref<256x96xf8E4M3FN> into memref<64x96xf32>
  func.return
}
// -----
// Integers are not scaled.
func.func @f(%a: memref<64x256xsi8>, %b: memref<256x96xsi8>, %c: memref<64x96xi32>, %x: f32) {
  frag.matmul %a scaled %x, %b into %c : memref<64x256xsi8> scaled f32, memref<256x96xsi8> into memref<64x96xi32>
  func.return
}
// -----
// Halves are not promoted.
func.func @f(%a: memref<64x256xf16>, %b: memref<256x96xf16>, %c: memref<64x96xf16>) {
  frag.matmul %a, %b into %c accumulate f16 {promote = 64 : i64} : memref<64x256xf16>, memref<256x96xf16> into memref<64x96xf16>
  func.return
}
// -----
// A tile of another depth.
func.func @f(%a: memref<64x256xf8E4M3FN>, %b: memref<256x96xf8E4M3FN>, %c: memref<64x96xf32>) {
  frag.matmul %a, %b into %c {promote = 128 : i64, tile = array<i64: 64, 64, 64>} : memref<64x256xf8E4M3FN>, memref<256x96xf8E4M3FN> into memref<64x96xf32>
  func.return
}
// -----
// Rows of a tile that share scales with those of another.
func.func @f(%a: memref<64x256xf8E4M3FN>, %b: memref<256x96xf8E4M3FN>, %c: memref<64x96xf32>, %x: memref<1x2xf32>) {
  frag.matmul %a scaled %x by [96, 128], %b into %c {stages = 2 : i64} : memref<64x256xf8E4M3FN> scaled memref<1x2xf32>, memref<256x96xf8E4M3FN> into memref<64x96xf32>
  func.return
}
// -----
// A depth that no instruction has.
func.func @f(%a: memref<64x256xf8E4M3FN>, %b: memref<256x96xf8E4M3FN>, %c: memref<64x96xf32>) {
  frag.matmul %a, %b into %c {promote = 40 : i64} : memref<64x256xf8E4M3FN>, memref<256x96xf8E4M3FN> into memref<64x96xf32>
  func.return
}
// -----
// Scales of another batch.
func.func @f(%a: memref<2x64x64xf16>, %b: memref<64x64xf16>, %c: memref<2x64x64xf32>, %s: memref<3x64xf32>) {
  frag.matmul %a scaled %s, %b into %c : memref<2x64x64xf16> scaled memref<3x64xf32>, memref<64x64xf16> into memref<2x64x64xf32>
  func.return
}
// -----
// One dimension is of rows, not of matrices.
func.func @f(%a: memref<2x64x64xf16>, %b: memref<64x64xf16>, %c: memref<2x64x64xf32>, %s: memref<2xf32>) {
  frag.matmul %a scaled %s, %b into %c : memref<2x64x64xf16> scaled memref<2xf32>, memref<64x64xf16> into memref<2x64x64xf32>
  func.return
}
// -----
// Some of a batch's dimensions.
func.func @f(%a: memref<2x3x64x64xf16>, %b: memref<64x64xf16>, %c: memref<2x3x64x64xf32>, %s: memref<3x64xf32>) {
  frag.matmul %a scaled %s, %b into %c : memref<2x3x64x64xf16> scaled memref<3x64xf32>, memref<64x64xf16> into memref<2x3x64x64xf32>
  func.return
}
// -----
// No dimension at all.
func.func @f(%a: memref<64x64xf16>, %b: memref<64x64xf16>, %c: memref<64x64xf32>, %s: memref<f32>) {
  frag.matmul %a scaled %s, %b into %c : memref<64x64xf16> scaled memref<f32>, memref<64x64xf16> into memref<64x64xf32>
  func.return
}
// -----
// Scales of fewer groups than there are.
func.func @f(%a: memref<?x256xf8E4M3FN>, %b: memref<8x96x256xf8E4M3FN>, %c: memref<?x96xf32>, %ends: memref<8xi32>, %s: memref<7x1x2xf32>) {
  frag.matmul %a, %b transposed scaled %s transposed by [128, 128] into %c groups %ends : memref<?x256xf8E4M3FN>, memref<8x96x256xf8E4M3FN> scaled memref<7x1x2xf32> into memref<?x96xf32> groups memref<8xi32>
  func.return
}
// -----
// Rows of several groups do not share a scale.
func.func @f(%a: memref<?x256xf8E4M3FN>, %b: memref<8x256x96xf8E4M3FN>, %c: memref<?x96xf32>, %ends: memref<8xi32>, %s: memref<?x2xf32>) {
  frag.matmul %a scaled %s by [64, 128], %b into %c groups %ends : memref<?x256xf8E4M3FN> scaled memref<?x2xf32>, memref<8x256x96xf8E4M3FN> into memref<?x96xf32> groups memref<8xi32>
  func.return
}
// -----
// A row is in one group.
func.func @f(%a: memref<?x256xf8E4M3FN>, %b: memref<8x256x96xf8E4M3FN>, %c: memref<?x96xf32>, %ends: memref<8xi32>, %s: memref<8x?xf32>) {
  frag.matmul %a scaled %s, %b into %c groups %ends : memref<?x256xf8E4M3FN> scaled memref<8x?xf32>, memref<8x256x96xf8E4M3FN> into memref<?x96xf32> groups memref<8xi32>
  func.return
}
// -----
// Groups have one dimension.
func.func @f(%a: memref<?x256xf8E4M3FN>, %b: memref<8x256x96xf8E4M3FN>, %c: memref<?x96xf32>, %ends: memref<8xi32>, %s: memref<8x8x96xf32>) {
  frag.matmul %a, %b scaled %s into %c groups %ends : memref<?x256xf8E4M3FN>, memref<8x256x96xf8E4M3FN> scaled memref<8x8x96xf32> into memref<?x96xf32> groups memref<8xi32>
  func.return
}
