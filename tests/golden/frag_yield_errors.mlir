// RUN: -p frag-place
// -----
// One value.
func.func @f(%a: memref<16x32xf32>) {
  %0 = frag.load %a[0, 0] : memref<16x32xf32> -> !frag.tile<16x32xf32>
  %1 = frag.map %0 : !frag.tile<16x32xf32> -> !frag.tile<16x32xf32> {
  ^bb0(%x: f32):
    frag.yield
  }
  func.return
}
// -----
// Outside of an elementwise region.
func.func @f(%x: f32) {
  frag.yield %x : f32
  func.return
}
