// RUN: -p frag-place
// A row's prefix sums where its accumulator lies; the largest from the end on.
func.func @a(%x: memref<32x32xf32>, %y: memref<32x32xf32>) attributes {frag.warps = array<i64: 2, 2>} {
  %0 = frag.load %x[0, 0] : memref<32x32xf32> -> !frag.tile<32x32xf32, #frag.mma<m16n8k16.f16, c, warps = [2, 2]>>
  %1 = frag.scan add dim 1 %0 : !frag.tile<32x32xf32, #frag.mma<m16n8k16.f16, c, warps = [2, 2]>>
  %2 = frag.scan max dim 0 exclusive reverse %1 {note = "kept"} : !frag.tile<32x32xf32, #frag.mma<m16n8k16.f16, c, warps = [2, 2]>>
  frag.store %2, %y[0, 0] : !frag.tile<32x32xf32, #frag.mma<m16n8k16.f16, c, warps = [2, 2]>>, memref<32x32xf32>
  func.return
}
// Layouts follow; in the general form.
func.func @b(%x: memref<64xi32>, %y: memref<64xi32>) {
  %0 = frag.load %x[0] : memref<64xi32> -> !frag.tile<64xi32>
  %1 = frag.scan maxui dim 0 reverse %0 : !frag.tile<64xi32>
  %2 = "frag.scan"(%1) <{kind = "xor", dim = 0 : i64, exclusive}> : (!frag.tile<64xi32>) -> !frag.tile<64xi32>
  frag.store %2, %y[0] : !frag.tile<64xi32>, memref<64xi32>
  func.return
}
