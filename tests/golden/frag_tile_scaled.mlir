// RUN: -p frag-tile{target=sm_90a}
// Scales of blocks are carried from turn to turn, loaded one ahead.
func.func @blocks(%a: memref<128x256xf8E4M3FN>, %b: memref<128x256xf8E4M3FN>, %c: memref<128x128xbf16>, %x: memref<2x128xf32>, %y: memref<1x2xf32>) {
  frag.matmul %a scaled %x transposed by [1, 128], %b transposed scaled %y transposed by [128, 128] into %c {stages = 3 : i64} : memref<128x256xf8E4M3FN> scaled memref<2x128xf32>, memref<128x256xf8E4M3FN> scaled memref<1x2xf32> into memref<128x128xbf16>
  func.return
}
// Scales of columns are loaded in the turn that multiplies by them; those of rows lie along K.
func.func @both(%a: memref<128x128xbf16>, %b: memref<128x128xbf16>, %c: memref<128x128xf32>, %x: memref<128x2xf32>, %y: memref<2x128xf32>) {
  frag.matmul %a scaled %x by [1, 64], %b scaled %y by [64, 1] into %c {stages = 3 : i64} : memref<128x128xbf16> scaled memref<128x2xf32>, memref<128x128xbf16> scaled memref<2x128xf32> into memref<128x128xf32>
  func.return
}
// Scales that do not change along K multiply the whole sum.
func.func @behind(%a: memref<64x64xf8E4M3FN>, %b: memref<64x64xf8E4M3FN>, %c: memref<64x64xf32>, %x: memref<64xf32>, %y: f32) {
  frag.matmul %a scaled %x, %b transposed scaled %y into %c {stages = 3 : i64} : memref<64x64xf8E4M3FN> scaled memref<64xf32>, memref<64x64xf8E4M3FN> scaled f32 into memref<64x64xf32>
  func.return
}
// Partial sums alone.
func.func @promoted(%a: memref<64x256xf8E4M3FN>, %b: memref<64x256xf8E4M3FN>, %c: memref<64x64xf32>) {
  frag.matmul %a, %b transposed into %c {promote = 128 : i64, stages = 3 : i64} : memref<64x256xf8E4M3FN>, memref<64x256xf8E4M3FN> into memref<64x64xf32>
  func.return
}
