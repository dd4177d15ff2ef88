// RUN: -p frag-place
// Two tiles, a scalar from outside, another type of element.
func.func @f(%a: memref<16x32xf32>, %s: f32) {
  %0 = frag.load %a[0, 0] : memref<16x32xf32> -> !frag.tile<16x32xf32>
  %1 = frag.map %0, %0 : !frag.tile<16x32xf32>, !frag.tile<16x32xf32> -> !frag.tile<16x32xf16> {
  ^bb0(%x: f32, %y: f32):
    %2 = math.fma %x, %y, %s : f32
    %3 = arith.cmpf olt, %2, %s : f32
    %4 = arith.select %3, %s, %2 : f32
    %5 = arith.truncf %4 : f32 to f16
    frag.yield %5 : f16
  }
  func.return
}
