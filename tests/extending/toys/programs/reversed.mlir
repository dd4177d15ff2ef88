func.func @reversed(%a: memref<8x32xi32>, %c: memref<8x32xi32>)
    attributes {frag.warps = array<i64: 1, 1>} {
  %t = frag.load %a[0, 0] : memref<8x32xi32> -> !frag.tile<8x32xi32>
  %r = toy.reversed %t : !frag.tile<8x32xi32>
  frag.store %r, %c[0, 0] : !frag.tile<8x32xi32>, memref<8x32xi32>
  func.return
}
