// RUN: -p frag-place
// Rows in order; the layout counts on.
func.func @f(%a: memref<16x16xf16>, %d: memref<16x4x4xf16>) {
  %0 = frag.load %a[0, 0] : memref<16x16xf16> -> !frag.tile<16x16xf16, #frag.mma<m16n8k16.f16, a>>
  %1 = frag.reshape %0 : !frag.tile<16x16xf16, #frag.mma<m16n8k16.f16, a>> -> !frag.tile<16x4x4xf16>
  frag.store %1, %d[0, 0, 0] : !frag.tile<16x4x4xf16>, memref<16x4x4xf16>
  func.return
}
// A dimension of 1 comes; nothing says a layout.
func.func @g(%a: memref<64xf32>, %d: memref<64x1xf32>) {
  %0 = frag.load %a[0] : memref<64xf32> -> !frag.tile<64xf32>
  %1 = frag.reshape %0 : !frag.tile<64xf32> -> !frag.tile<64x1xf32>
  frag.store %1, %d[0, 0] : !frag.tile<64x1xf32>, memref<64x1xf32>
  func.return
}
// Borders cross: six elements in a row stay in a lane.
func.func @h(%a: memref<64x6xf32>, %d: memref<96x4xf32>) {
  %0 = frag.load %a[0, 0] : memref<64x6xf32> -> !frag.tile<64x6xf32>
  %1 = frag.reshape %0 : !frag.tile<64x6xf32> -> !frag.tile<96x4xf32>
  frag.store %1, %d[0, 0] : !frag.tile<96x4xf32>, memref<96x4xf32>
  func.return
}
