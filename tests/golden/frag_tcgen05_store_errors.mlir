// RUN: -p frag-place
!b = memref<64x64xf16, #frag.shared<swizzle = 128>>
!sum = memref<128x64xf32, #frag.tensor>
!a = memref<128x64xf16, #frag.tensor<operand>>
// -----
// Into shared memory.
func.func @f(%t: !frag.tile<128x64xf32>, %d: memref<128x64xf32, #frag.shared>) {
  frag.tcgen05_store %t to %d : !frag.tile<128x64xf32>, memref<128x64xf32, #frag.shared>
  func.return
}
// -----
// Some rows.
func.func @f(%t: !frag.tile<64x64xf16>, %a: !a) {
  frag.tcgen05_store %t to %a : !frag.tile<64x64xf16>, !a
  func.return
}
// -----
// Beyond the last column.
func.func @f(%t: !frag.tile<128x32xf16>, %a: !a) {
  frag.tcgen05_store %t to %a from 48 : !frag.tile<128x32xf16>, !a
  func.return
}
// -----
// Another type.
func.func @f(%t: !frag.tile<128x64xf32>, %a: !a) {
  frag.tcgen05_store %t to %a : !frag.tile<128x64xf32>, !a
  func.return
}
// -----
// From the middle of a column on.
func.func @f(%t: !frag.tile<128x32xf16>, %a: !a) {
  frag.tcgen05_store %t to %a from 1 : !frag.tile<128x32xf16>, !a
  func.return
}
// -----
// Scales go there by frag.tcgen05_copy.
func.func @f(%t: !frag.tile<128x4xf8E8M0FNU>, %x: memref<128x4xf8E8M0FNU, #frag.tensor<scales>>) {
  frag.tcgen05_store %t to %x : !frag.tile<128x4xf8E8M0FNU>, memref<128x4xf8E8M0FNU, #frag.tensor<scales>>
  func.return
}
// -----
// Sums are no operand.
func.func @f(%a: memref<128x64xf16, #frag.tensor>, %b: !b, %d: !sum) {
  frag.tcgen05_mma %a, %b into %d : memref<128x64xf16, #frag.tensor>, !b into !sum
  func.return
}
// -----
// Only A comes from there.
func.func @f(%b: memref<128x64xf16, #frag.shared<swizzle = 128>>, %a: !a, %d: memref<128x128xf32, #frag.tensor>) {
  frag.tcgen05_mma %b, %a transposed into %d : memref<128x64xf16, #frag.shared<swizzle = 128>>, !a into memref<128x128xf32, #frag.tensor>
  func.return
}
// -----
// An operand is no place for sums.
func.func @f(%a: memref<128x64xf16, #frag.shared<swizzle = 128>>, %b: !b, %d: !a) {
  frag.tcgen05_mma %a, %b into %d : memref<128x64xf16, #frag.shared<swizzle = 128>>, !b into !a
  func.return
}
// -----
// K x M.
func.func @f(%a: memref<128x128xf16, #frag.tensor<operand>>, %b: memref<64x128xf16, #frag.shared<swizzle = 128>>, %d: !sum) {
  frag.tcgen05_mma %a transposed, %b transposed into %d : memref<128x128xf16, #frag.tensor<operand>>, memref<64x128xf16, #frag.shared<swizzle = 128>> into !sum
  func.return
}
// -----
// Something else.
func.func @f(%a: memref<128x64xf16, #frag.tensor<metadata>>) {
  func.return
}
