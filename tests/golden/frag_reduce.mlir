// RUN: -p frag-place
// Rows of an accumulator: four lanes have one of them between them; two warps a part each.
func.func @a(%x: memref<32x32xf32>, %y: memref<32xf32>) attributes {frag.warps = array<i64: 2, 2>} {
  %0 = frag.load %x[0, 0] : memref<32x32xf32> -> !frag.tile<32x32xf32, #frag.mma<m16n8k16.f16, c, warps = [2, 2]>>
  %1 = frag.reduce add dim 1 %0 : !frag.tile<32x32xf32, #frag.mma<m16n8k16.f16, c, warps = [2, 2]>> -> !frag.tile<32xf32>
  frag.store %1, %y[0] : !frag.tile<32xf32>, memref<32xf32>
  func.return
}
// To a number, which all threads have; and the place of the largest.
func.func @b(%x: memref<64xi32>, %y: memref<64xi32>) {
  %0 = frag.load %x[0] : memref<64xi32> -> !frag.tile<64xi32>
  %1 = frag.reduce maxui dim 0 %0 : !frag.tile<64xi32> -> i32
  %2 = frag.reduce argmin dim 0 %0 {note = "kept"} : !frag.tile<64xi32> -> i32
  %3 = arith.addi %1, %2 : i32
  %4 = frag.fill %3 : !frag.tile<64xi32>
  frag.store %4, %y[0] : !frag.tile<64xi32>, memref<64xi32>
  func.return
}
// A tile of four dimensions, in the general form.
func.func @c(%x: memref<2x2x4x16xf64>, %y: memref<2x4x16xf64>) {
  %0 = frag.load %x[0, 0, 0, 0] : memref<2x2x4x16xf64> -> !frag.tile<2x2x4x16xf64>
  %1 = "frag.reduce"(%0) <{kind = "maxnum", dim = 1 : i64}> : (!frag.tile<2x2x4x16xf64>) -> !frag.tile<2x4x16xf64>
  frag.store %1, %y[0, 0, 0] : !frag.tile<2x4x16xf64>, memref<2x4x16xf64>
  func.return
}
