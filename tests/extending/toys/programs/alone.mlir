// No product: one tile gets rows in order, the layout of the other follows.
func.func @alone(%a: memref<16x64xf32>, %c: memref<64x16xf32>)
    attributes {frag.warps = array<i64: 2, 1>} {
  %t = frag.load %a[0, 0] : memref<16x64xf32> -> !frag.tile<16x64xf32>
  %u = toy.transpose %t : !frag.tile<16x64xf32> -> !frag.tile<64x16xf32>
  frag.store %u, %c[0, 0] : !frag.tile<64x16xf32>, memref<64x16xf32>
  func.return
}
