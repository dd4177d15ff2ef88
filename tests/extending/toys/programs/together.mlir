// Attached interfaces, a region, a demand, a conversion, a scalar.
func.func @together(%a: memref<16x64xf32>, %c: memref<16x64xf32>)
    attributes {frag.warps = array<i64: 1, 1>} {
  %t = frag.load %a[0, 0] : memref<16x64xf32> -> !frag.tile<16x64xf32>
  %two = arith.constant 2.0 : f32
  %u = toy.negated %t : !frag.tile<16x64xf32>
  %v = toy.apply %u : !frag.tile<16x64xf32> {
  ^bb0(%x: f32):
    %y = arith.mulf %x, %two : f32
    frag.yield %y : f32
  }
  %w = toy.settled %v : !frag.tile<16x64xf32> -> !frag.tile<16x64xf32>
  %n = toy.threads : f32
  %f = frag.fill %n : !frag.tile<16x64xf32>
  %r = frag.map %w, %f : !frag.tile<16x64xf32>, !frag.tile<16x64xf32> -> !frag.tile<16x64xf32> {
  ^bb0(%x: f32, %y: f32):
    %z = arith.addf %x, %y : f32
    frag.yield %z : f32
  }
  frag.store %r, %c[0, 0] : !frag.tile<16x64xf32>, memref<16x64xf32>
  func.return
}
