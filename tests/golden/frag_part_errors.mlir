// RUN: -p frag-place
!ring = !frag.ring<memref<64x32xf16, #frag.shared<swizzle = 64>>, memref<32x64xf16, #frag.shared<swizzle = 128>>>
!slot = !frag.slot<memref<64x32xf16, #frag.shared<swizzle = 64>>, memref<32x64xf16, #frag.shared<swizzle = 128>>>
// -----
// There is no such part.
func.func @f(%n: index, %c: i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %ring = frag.ring 2 : !ring
  %s = frag.acquire %ring : !ring
  %a = frag.part %s[2] : !slot
  frag.publish %s : !slot
  func.return
}
// -----
// Of a ring.
func.func @f(%n: index, %c: i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %ring = frag.ring 2 : !ring
  %a = frag.part %ring[0] : !ring
  func.return
}
// -----
// Taken when the slot is not held any more.
func.func @f(%n: index, %c: i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %ring = frag.ring 2 : !ring
  %s = frag.acquire %ring : !ring
  frag.publish %s : !slot
  %a = frag.part %s[0] : !slot
  func.return
}
// -----
// Used when the slot is not held any more.
func.func @f(%n: index, %c: i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %ring = frag.ring 2 : !ring
  %s = frag.await %ring : !ring
  %a = frag.part %s[0] : !slot
  frag.release %s : !slot
  %t = frag.load %a[0, 0] : memref<64x32xf16, #frag.shared<swizzle = 64>> -> !frag.tile<64x32xf16>
  func.return
}
// -----
// A view of it, when the slot is not held any more.
func.func @f(%n: index, %c: i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %ring = frag.ring 2 : !ring
  %s = frag.await %ring : !ring
  %a = frag.part %s[0] : !slot
  %v = frag.view %a[] : memref<64x32xf16, #frag.shared<swizzle = 64>> -> memref<64x32xf16, #frag.shared<swizzle = 64>>
  frag.release %s : !slot
  %t = frag.load %v[0, 0] : memref<64x32xf16, #frag.shared<swizzle = 64>> -> !frag.tile<64x32xf16>
  func.return
}
