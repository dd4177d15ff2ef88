// RUN: -p frag-tile{target=sm_100a},frag-pipeline{target=sm_100a},frag-specialize
// Scales of A come in chunks with A and B, by TMA; those of B, a matrix of rows by blocks, through a ring
// that a role of threads fills. Both are copied to tensor memory ahead of each turn's product.
func.func @mxfp8(%a: memref<256x256xf8E4M3FN>, %b: memref<128x256xf8E4M3FN>, %c: memref<256x128xbf16>, %x: memref<2x2x2x256xf8E8M0FNU>, %y: memref<128x8xf8E8M0FNU>) {
  frag.matmul %a scaled %x by [1, 32], %b transposed scaled %y transposed by [32, 1] into %c {tile = array<i64: 128, 128, 128>} : memref<256x256xf8E4M3FN> scaled memref<2x2x2x256xf8E8M0FNU>, memref<128x256xf8E4M3FN> scaled memref<128x8xf8E8M0FNU> into memref<256x128xbf16>
  func.return
}
