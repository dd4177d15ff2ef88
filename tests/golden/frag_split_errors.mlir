// RUN: -p frag-place
// -----
// Two at the end.
func.func @f(%a: memref<16x8xf32>) {
  %0 = frag.load %a[0, 0] : memref<16x8xf32> -> !frag.tile<16x8xf32>
  %1, %2 = frag.split %0 : !frag.tile<16x8xf32> -> !frag.tile<16xf32>, !frag.tile<16xf32>
  func.return
}
// -----
// Parts of another shape.
func.func @f(%a: memref<16x2xf32>) {
  %0 = frag.load %a[0, 0] : memref<16x2xf32> -> !frag.tile<16x2xf32>
  %1, %2 = frag.split %0 : !frag.tile<16x2xf32> -> !frag.tile<16xf32>, !frag.tile<16x1xf32>
  func.return
}
