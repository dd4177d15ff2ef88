// RUN: -p frag-place
// A column beside every element of an accumulator: where the sums are kept, it is.
func.func @a(%x: memref<16xf32>, %y: memref<16x8xf32>) {
  %0 = frag.load %x[0] : memref<16xf32> -> !frag.tile<16xf32>
  %1 = frag.broadcast %0 along 1 : !frag.tile<16xf32> -> !frag.tile<16x8xf32, #frag.mma<m16n8k16.f16, c>>
  frag.store %1, %y[0, 0] : !frag.tile<16x8xf32, #frag.mma<m16n8k16.f16, c>>, memref<16x8xf32>
  func.return
}
// A row, in a layout of the compiler's choice; in the general form.
func.func @b(%x: memref<64xf16>, %y: memref<4x64xf16>) {
  %0 = frag.load %x[0] : memref<64xf16> -> !frag.tile<64xf16>
  %1 = "frag.broadcast"(%0) <{along = 0 : i64}> : (!frag.tile<64xf16>) -> !frag.tile<4x64xf16>
  frag.store %1, %y[0, 0] : !frag.tile<4x64xf16>, memref<4x64xf16>
  func.return
}
