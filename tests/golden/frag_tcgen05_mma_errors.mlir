// RUN: -p frag-place
!a = memref<128x64xf16, #frag.shared<swizzle = 128>>
!b = memref<64x64xf16, #frag.shared<swizzle = 128>>
!sum = memref<128x64xf32, #frag.tensor>
// -----
// A in global memory.
func.func @f(%a: memref<128x64xf16>, %b: !b, %d: !sum) {
  frag.tcgen05_mma %a, %b into %d : memref<128x64xf16>, !b into !sum
  func.return
}
// -----
// Sums in shared memory.
func.func @f(%a: !a, %b: !b, %d: memref<128x64xf32, #frag.shared>) {
  frag.tcgen05_mma %a, %b into %d : !a, !b into memref<128x64xf32, #frag.shared>
  func.return
}
// -----
// Sums of bf16 in f16.
func.func @f(%a: memref<128x64xbf16, #frag.shared<swizzle = 128>>, %b: memref<64x64xbf16, #frag.shared<swizzle = 128>>, %d: memref<128x64xf16, #frag.tensor>) {
  frag.tcgen05_mma %a, %b into %d : memref<128x64xbf16, #frag.shared<swizzle = 128>>, memref<64x64xbf16, #frag.shared<swizzle = 128>> into memref<128x64xf16, #frag.tensor>
  func.return
}
// -----
// 64 rows.
func.func @f(%a: !b, %b: !b, %d: memref<64x64xf32, #frag.tensor>) {
  frag.tcgen05_mma %a, %b into %d : !b, !b into memref<64x64xf32, #frag.tensor>
  func.return
}
// -----
// A the other way round.
func.func @f(%a: !a, %b: !b, %d: !sum) {
  frag.tcgen05_mma %a transposed, %b into %d : !a, !b into !sum
  func.return
}
// -----
// 24 columns.
func.func @f(%a: !a, %b: memref<64x24xf16, #frag.shared>, %d: memref<128x24xf32, #frag.tensor>) {
  frag.tcgen05_mma %a, %b into %d : !a, memref<64x24xf16, #frag.shared> into memref<128x24xf32, #frag.tensor>
  func.return
}
// -----
// Two kinds.
func.func @f(%a: !a, %b: memref<64x64xsi8, #frag.shared>, %d: !sum) {
  frag.tcgen05_mma %a, %b into %d : !a, memref<64x64xsi8, #frag.shared> into !sum
  func.return
}
