func.func @wrong(%a: memref<32x16xf32>, %c: memref<32x16xf32>)
    attributes {frag.warps = array<i64: 1, 1>} {
  %t = frag.load %a[0, 0] : memref<32x16xf32> -> !frag.tile<32x16xf32>
  %d = toy.wrong "HOW" %t : !frag.tile<32x16xf32>
  frag.store %d, %c[0, 0] : !frag.tile<32x16xf32>, memref<32x16xf32>
  func.return
}
