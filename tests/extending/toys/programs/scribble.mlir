func.func @scribble(%a: memref<16x64xf32>, %b: memref<16x64xf32>, %c: memref<16x64xf32>)
    attributes {frag.warps = array<i64: 1, 1>} {
  %t = frag.load %a[0, 0] : memref<16x64xf32> -> !frag.tile<16x64xf32>
  frag.store %t, %c[0, 0] : !frag.tile<16x64xf32>, memref<16x64xf32>
  toy.scribble %b : memref<16x64xf32>
  func.return
}
