// RUN: -p frag-place
// -----
// The region yields something else than the result holds.
func.func @f(%a: memref<16x32xf32>) {
  %0 = frag.load %a[0, 0] : memref<16x32xf32> -> !frag.tile<16x32xf32>
  %1 = frag.map %0 : !frag.tile<16x32xf32> -> !frag.tile<16x32xf16> {
  ^bb0(%x: f32):
    frag.yield %x : f32
  }
  func.return
}
// -----
// The region takes something else than the tiles hold.
func.func @f(%a: memref<16x32xf32>) {
  %0 = frag.load %a[0, 0] : memref<16x32xf32> -> !frag.tile<16x32xf32>
  %1 = frag.map %0 : !frag.tile<16x32xf32> -> !frag.tile<16x32xf16> {
  ^bb0(%x: f16):
    frag.yield %x : f16
  }
  func.return
}
// -----
// Another shape.
func.func @f(%a: memref<16x32xf32>) {
  %0 = frag.load %a[0, 0] : memref<16x32xf32> -> !frag.tile<16x32xf32>
  %1 = frag.map %0 : !frag.tile<16x32xf32> -> !frag.tile<32x16xf32> {
  ^bb0(%x: f32):
    frag.yield %x : f32
  }
  func.return
}
// -----
// No frag.yield at the end.
func.func @f(%a: memref<16x32xf32>) {
  %0 = frag.load %a[0, 0] : memref<16x32xf32> -> !frag.tile<16x32xf32>
  %1 = frag.map %0 : !frag.tile<16x32xf32> -> !frag.tile<16x32xf32> {
  ^bb0(%x: f32):
    %2 = arith.addf %x, %x : f32
  }
  func.return
}
