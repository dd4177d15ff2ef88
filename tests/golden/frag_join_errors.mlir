// RUN: -p frag-place
// -----
// One shape.
func.func @f(%a: memref<16x8xf32>) {
  %0 = frag.load %a[0, 0] : memref<16x8xf32> -> !frag.tile<16x8xf32>
  %1 = frag.load %a[0, 0] : memref<16x8xf32> -> !frag.tile<8x8xf32>
  %2 = frag.join %0, %1 : !frag.tile<16x8xf32>, !frag.tile<8x8xf32> -> !frag.tile<16x8x2xf32>
  func.return
}
// -----
// Five dimensions.
func.func @f(%a: memref<2x2x4x8xf32>) {
  %0 = frag.load %a[0, 0, 0, 0] : memref<2x2x4x8xf32> -> !frag.tile<2x2x4x8xf32>
  %1 = frag.join %0, %0 : !frag.tile<2x2x4x8xf32>, !frag.tile<2x2x4x8xf32> -> !frag.tile<2x2x4x16xf32>
  func.return
}
// -----
// The result's shape.
func.func @f(%a: memref<16x8xf32>) {
  %0 = frag.load %a[0, 0] : memref<16x8xf32> -> !frag.tile<16x8xf32>
  %1 = frag.join %0, %0 : !frag.tile<16x8xf32>, !frag.tile<16x8xf32> -> !frag.tile<2x16x8xf32>
  func.return
}
