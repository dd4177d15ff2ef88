// D = A B by one product of 16 x 8 x 32, which the package tilekit has an instruction for.
func.func @wide(%a: memref<16x32xf16>, %b: memref<32x8xf16>, %d: memref<16x8xf32>)
    attributes {frag.warps = array<i64: 1, 1>} {
  %x = frag.load %a[0, 0] : memref<16x32xf16> -> !frag.tile<16x32xf16>
  %y = frag.load %b[0, 0] : memref<32x8xf16> -> !frag.tile<32x8xf16>
  %zero = arith.constant 0.0 : f32
  %z = frag.fill %zero : !frag.tile<16x8xf32>
  %p = frag.mma %x, %y, %z : !frag.tile<16x32xf16>, !frag.tile<32x8xf16>, !frag.tile<16x8xf32>
       -> !frag.tile<16x8xf32>
  frag.store %p, %d[0, 0] : !frag.tile<16x8xf32>, memref<16x8xf32>
  func.return
}
