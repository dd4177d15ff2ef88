// A copy through a layout of the package tilekit.
func.func @copy(%a: memref<4x64xf32>, %d: memref<4x64xf32>)
    attributes {frag.warps = array<i64: 1, 1>} {
  %x = frag.load %a[0, 0] : memref<4x64xf32> -> !frag.tile<4x64xf32, #kit.columns>
  frag.store %x, %d[0, 0] : !frag.tile<4x64xf32, #kit.columns>, memref<4x64xf32>
  func.return
}
