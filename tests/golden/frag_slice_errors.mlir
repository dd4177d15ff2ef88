// RUN: -p frag-place
// -----
// An offset for every dimension.
func.func @f(%a: memref<16x8xf32>) {
  %0 = frag.load %a[0, 0] : memref<16x8xf32> -> !frag.tile<16x8xf32>
  %1 = frag.slice %0 [0] : !frag.tile<16x8xf32> -> !frag.tile<8x8xf32>
  func.return
}
// -----
// A stride for every dimension.
func.func @f(%a: memref<16x8xf32>) {
  %0 = frag.load %a[0, 0] : memref<16x8xf32> -> !frag.tile<16x8xf32>
  %1 = frag.slice %0 [0, 0] strides [2] : !frag.tile<16x8xf32> -> !frag.tile<8x8xf32>
  func.return
}
// -----
// Dimensions stay.
func.func @f(%a: memref<16x8xf32>) {
  %0 = frag.load %a[0, 0] : memref<16x8xf32> -> !frag.tile<16x8xf32>
  %1 = frag.slice %0 [3, 0] : !frag.tile<16x8xf32> -> !frag.tile<8xf32>
  func.return
}
// -----
// Beyond the end.
func.func @f(%a: memref<16x8xf32>) {
  %0 = frag.load %a[0, 0] : memref<16x8xf32> -> !frag.tile<16x8xf32>
  %1 = frag.slice %0 [0, 6] : !frag.tile<16x8xf32> -> !frag.tile<16x4xf32>
  func.return
}
// -----
// Ahead of the beginning.
func.func @f(%a: memref<16x8xf32>) {
  %0 = frag.load %a[0, 0] : memref<16x8xf32> -> !frag.tile<16x8xf32>
  %1 = frag.slice %0 [0, -1] : !frag.tile<16x8xf32> -> !frag.tile<16x4xf32>
  func.return
}
// -----
// What is cut off is spread over lanes, and both layouts are written.
func.func @f(%a: memref<16x8xf32>) {
  %0 = frag.load %a[0, 0] : memref<16x8xf32> -> !frag.tile<16x8xf32, #frag.layout<"lane [8:(0,1) 4:(1,0)] element [4:(4,0)]">>
  %1 = frag.slice %0 [0, 0] : !frag.tile<16x8xf32, #frag.layout<"lane [8:(0,1) 4:(1,0)] element [4:(4,0)]">> -> !frag.tile<16x4xf32, #frag.layout<"lane [4:(0,1) 8:(1,0)] element [2:(8,0)]">>
  func.return
}
