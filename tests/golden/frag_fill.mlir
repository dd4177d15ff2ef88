// RUN: -p frag-place
// A tile of one value.
func.func @f(%x: f16) {
  %0 = frag.fill %x : !frag.tile<32x64xf16>
  %z = arith.constant 0.0 : f32
  %1 = frag.fill %z : !frag.tile<16x8xf32, #frag.mma<m16n8k16.f16, c>>
  func.return
}
