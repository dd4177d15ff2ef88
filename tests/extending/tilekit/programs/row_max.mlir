// Every element of D becomes the largest of its row in A B, by an operation of the package tilekit.
func.func @row_max(%a: memref<32x16xf16>, %b: memref<16x16xf16>, %d: memref<32x16xf32>)
    attributes {frag.warps = array<i64: 2, 1>} {
  %x = frag.load %a[0, 0] : memref<32x16xf16> -> !frag.tile<32x16xf16>
  %y = frag.load %b[0, 0] : memref<16x16xf16> -> !frag.tile<16x16xf16>
  %zero = arith.constant 0.0 : f32
  %z = frag.fill %zero : !frag.tile<32x16xf32>
  %p = frag.mma %x, %y, %z : !frag.tile<32x16xf16>, !frag.tile<16x16xf16>, !frag.tile<32x16xf32>
       -> !frag.tile<32x16xf32>
  %max = kit.row_max %p : !frag.tile<32x16xf32> -> !frag.tile<32x16xf32>
  frag.store %max, %d[0, 0] : !frag.tile<32x16xf32>, memref<32x16xf32>
  func.return
}
