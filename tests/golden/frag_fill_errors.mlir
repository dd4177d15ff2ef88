// RUN: -p frag-place
// -----
// The value's type is the elements'.
func.func @f(%x: f32) {
  %0 = frag.fill %x : !frag.tile<32x64xf16>
  func.return
}
// -----
// A tile has a static shape.
func.func @f(%x: f32) {
  %0 = frag.fill %x : !frag.tile<?x64xf32>
  func.return
}
// -----
// A tile has one to four dimensions.
func.func @f(%x: f32) {
  %0 = frag.fill %x : !frag.tile<2x2x2x2x64xf32>
  func.return
}
// -----
// Something that is no layout.
func.func @f(%x: f32) {
  %0 = frag.fill %x : !frag.tile<64x64xf32, 5 : i32>
  func.return
}
