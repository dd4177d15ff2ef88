// RUN: -p frag-place
// -----
// Each dimension once.
func.func @f(%a: memref<16x8xf32>) {
  %0 = frag.load %a[0, 0] : memref<16x8xf32> -> !frag.tile<16x8xf32>
  %1 = frag.transpose %0 [1, 1] : !frag.tile<16x8xf32> -> !frag.tile<8x8xf32>
  func.return
}
// -----
// The result's shape.
func.func @f(%a: memref<16x8xf32>) {
  %0 = frag.load %a[0, 0] : memref<16x8xf32> -> !frag.tile<16x8xf32>
  %1 = frag.transpose %0 [1, 0] : !frag.tile<16x8xf32> -> !frag.tile<16x8xf32>
  func.return
}
// -----
// The type of elements stays.
func.func @f(%a: memref<16x8xf32>) {
  %0 = frag.load %a[0, 0] : memref<16x8xf32> -> !frag.tile<16x8xf32>
  %1 = frag.transpose %0 [1, 0] : !frag.tile<16x8xf32> -> !frag.tile<8x16xf16>
  func.return
}
// -----
// No element changes its lane.
func.func @f(%a: memref<8x8xf32>) {
  %0 = frag.load %a[0, 0] : memref<8x8xf32> -> !frag.tile<8x8xf32, #frag.layout<"lane [8:(0,1) 4:(1,0)] element [2:(4,0)]">>
  %1 = frag.transpose %0 [1, 0] : !frag.tile<8x8xf32, #frag.layout<"lane [8:(0,1) 4:(1,0)] element [2:(4,0)]">> -> !frag.tile<8x8xf32, #frag.layout<"lane [8:(0,1) 4:(1,0)] element [2:(4,0)]">>
  func.return
}
