// RUN: -p frag-place
// -----
// As many elements.
func.func @f(%a: memref<16x8xf32>) {
  %0 = frag.load %a[0, 0] : memref<16x8xf32> -> !frag.tile<16x8xf32>
  %1 = frag.reshape %0 : !frag.tile<16x8xf32> -> !frag.tile<16x16xf32>
  func.return
}
// -----
// No element changes its lane.
func.func @f(%a: memref<64xf32>) {
  %0 = frag.load %a[0] : memref<64xf32> -> !frag.tile<64xf32, #frag.layout<"lane [32:1] element [2:32]">>
  %1 = frag.reshape %0 : !frag.tile<64xf32, #frag.layout<"lane [32:1] element [2:32]">> -> !frag.tile<8x8xf32, #frag.layout<"lane [8:(0,1) 4:(2,0)] element [2:(1,0)]">>
  func.return
}
