#acc = #frag.mma<m16n8k16.f16, c>
func.func @double(%a: memref<16x64xf32>, %c: memref<16x64xf32>)
    attributes {frag.warps = array<i64: 1, 1>} {
  %t = frag.load %a[0, 0] : memref<16x64xf32> -> !frag.tile<16x64xf32, #acc>
  %d = toy.double %t : !frag.tile<16x64xf32, #acc>
  frag.store %d, %c[0, 0] : !frag.tile<16x64xf32, #acc>, memref<16x64xf32>
  func.return
}
