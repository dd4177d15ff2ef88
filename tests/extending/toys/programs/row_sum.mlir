func.func @row_sum(%a: memref<4x512xf32>, %c: memref<4x512xf32>)
    attributes {frag.warps = array<i64: 1, 2>} {
  %t = frag.load %a[0, 0] : memref<4x512xf32> -> !frag.tile<4x512xf32>
  %s = toy.row_sum %t : !frag.tile<4x512xf32>
  frag.store %s, %c[0, 0] : !frag.tile<4x512xf32>, memref<4x512xf32>
  func.return
}
