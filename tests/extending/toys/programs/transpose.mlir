// C = (A B^T)^T, of N x M: B's layout follows backwards from the product, C's forwards.
func.func @transpose(%a: memref<32x16xf16>, %b: memref<16x16xf16>,
                     %c: memref<16x32xf32>)
    attributes {frag.warps = array<i64: 2, 1>} {
  %x = frag.load %a[0, 0] : memref<32x16xf16> -> !frag.tile<32x16xf16>
  %y = frag.load %b[0, 0] : memref<16x16xf16> -> !frag.tile<16x16xf16>
  %z = toy.transpose %y : !frag.tile<16x16xf16> -> !frag.tile<16x16xf16>
  %zero = arith.constant 0.0 : f32
  %0 = frag.fill %zero : !frag.tile<32x16xf32>
  %d = frag.mma %x, %z, %0 : !frag.tile<32x16xf16>, !frag.tile<16x16xf16>, !frag.tile<32x16xf32>
       -> !frag.tile<32x16xf32>
  %t = toy.transpose %d : !frag.tile<32x16xf32> -> !frag.tile<16x32xf32>
  frag.store %t, %c[0, 0] : !frag.tile<16x32xf32>, memref<16x32xf32>
  func.return
}
