// RUN: -p frag-place
!ring = !frag.ring<memref<64x32xf16, #frag.shared<swizzle = 64>>, memref<32x64xf16, #frag.shared<swizzle = 128>>>
!slot = !frag.slot<memref<64x32xf16, #frag.shared<swizzle = 64>>, memref<32x64xf16, #frag.shared<swizzle = 128>>>
// -----
// No slot.
func.func @f(%n: index, %c: i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %ring = frag.ring 0 : !ring
  func.return
}
// -----
// In a loop.
func.func @f(%n: index, %c: i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    %ring = frag.ring 2 : !ring
  }
  func.return
}
// -----
// Of global memory.
func.func @f(%n: index, %c: i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %ring = frag.ring 2 : !frag.ring<memref<64x32xf16>>
  func.return
}
// -----
// A size that is not known.
func.func @f(%n: index, %c: i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %ring = frag.ring 2 : !frag.ring<memref<?x32xf16, #frag.shared>>
  func.return
}
// -----
// A layout that puts several elements at one place.
func.func @f(%n: index, %c: i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %ring = frag.ring 2 : !frag.ring<memref<64x32xf16, #frag.layout<"row [64:1] col [32:1]">, #frag.shared>>
  func.return
}
// -----
// No part.
func.func @f(%n: index, %c: i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %ring = frag.ring 2 : !frag.ring<>
  func.return
}
