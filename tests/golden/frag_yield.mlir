// RUN: -p frag-place
// The value of an element.
func.func @f(%a: memref<16x32xf32>) {
  %0 = frag.load %a[0, 0] : memref<16x32xf32> -> !frag.tile<16x32xf32>
  %1 = frag.map %0 : !frag.tile<16x32xf32> -> !frag.tile<16x32xf32> {
  ^bb0(%x: f32):
    frag.yield %x : f32
  }
  func.return
}
