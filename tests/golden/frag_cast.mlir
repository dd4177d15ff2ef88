// RUN: -p frag-place
// Another element type; the layout stays.
func.func @f(%a: memref<16x8xf32>, %d: memref<16x8xf16>) {
  %0 = frag.load %a[0, 0] : memref<16x8xf32> -> !frag.tile<16x8xf32, #frag.mma<m16n8k16.f16, c>>
  %1 = frag.cast %0 : !frag.tile<16x8xf32, #frag.mma<m16n8k16.f16, c>> -> !frag.tile<16x8xf16, #frag.mma<m16n8k16.f16, c>>
  frag.store %1, %d[0, 0] : !frag.tile<16x8xf16, #frag.mma<m16n8k16.f16, c>>, memref<16x8xf16>
  func.return
}
// Without layouts: both get one.
func.func @g(%a: memref<16x8xsi8>) {
  %0 = frag.load %a[0, 0] : memref<16x8xsi8> -> !frag.tile<16x8xsi8>
  %1 = frag.cast %0 : !frag.tile<16x8xsi8> -> !frag.tile<16x8xi32>
  func.return
}
