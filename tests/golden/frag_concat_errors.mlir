// RUN: -p frag-place
// -----
// A dimension that is none.
func.func @f(%a: memref<16x8xf32>) {
  %0 = frag.load %a[0, 0] : memref<16x8xf32> -> !frag.tile<16x8xf32>
  %1 = frag.concat %0, %0 dim 2 : !frag.tile<16x8xf32>, !frag.tile<16x8xf32> -> !frag.tile<16x16xf32>
  func.return
}
// -----
// The other dimensions are alike.
func.func @f(%a: memref<16x8xf32>) {
  %0 = frag.load %a[0, 0] : memref<16x8xf32> -> !frag.tile<16x8xf32>
  %1 = frag.load %a[0, 0] : memref<16x8xf32> -> !frag.tile<8x8xf32>
  %2 = frag.concat %0, %1 dim 1 : !frag.tile<16x8xf32>, !frag.tile<8x8xf32> -> !frag.tile<16x16xf32>
  func.return
}
// -----
// The result's shape.
func.func @f(%a: memref<16x8xf32>) {
  %0 = frag.load %a[0, 0] : memref<16x8xf32> -> !frag.tile<16x8xf32>
  %1 = frag.concat %0, %0 dim 0 : !frag.tile<16x8xf32>, !frag.tile<16x8xf32> -> !frag.tile<16x16xf32>
  func.return
}
