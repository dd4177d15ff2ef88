// RUN: -p frag-place
// -----
// The shape stays.
func.func @f(%a: memref<16x8xf32>) {
  %0 = frag.load %a[0, 0] : memref<16x8xf32> -> !frag.tile<16x8xf32>
  %1 = frag.cast %0 : !frag.tile<16x8xf32> -> !frag.tile<8x16xf16>
  func.return
}
// -----
// The layout stays.
func.func @f(%a: memref<16x8xf32>) {
  %0 = frag.load %a[0, 0] : memref<16x8xf32> -> !frag.tile<16x8xf32, #frag.mma<m16n8k16.f16, c>>
  %1 = frag.cast %0 : !frag.tile<16x8xf32, #frag.mma<m16n8k16.f16, c>> -> !frag.tile<16x8xf16>
  func.return
}
// -----
// No tile holds i24.
func.func @f(%a: memref<16x8xf32>) {
  %0 = frag.load %a[0, 0] : memref<16x8xf32> -> !frag.tile<16x8xf32>
  %1 = frag.cast %0 : !frag.tile<16x8xf32> -> !frag.tile<16x8xi24>
  func.return
}
