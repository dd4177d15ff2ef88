// RUN: -p frag-place,convert-frag-to-ptx{target=sm_90a}
!ring = !frag.ring<memref<64x32xf16, #frag.shared<swizzle = 64>>>
!slot = !frag.slot<memref<64x32xf16, #frag.shared<swizzle = 64>>>
// -----
// Awaited, and nothing is published.
func.func @f(%x: memref<64x32xf16>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %ring = frag.ring 2 : !ring
  %s = frag.await %ring : !ring
  frag.release %s : !slot
  func.return
}
// -----
// Two slots are acquired at once.
func.func @f(%x: memref<64x32xf16>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %ring = frag.ring 2 : !ring
  %s = frag.acquire %ring : !ring
  %t = frag.acquire %ring : !ring
  frag.publish %s : !slot
  frag.publish %t : !slot
  func.return
}
// -----
// Groups counted by hand.
func.func @f(%x: memref<64x32xf16>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %ring = frag.ring 2 : !ring
  %s = frag.acquire %ring : !ring
  frag.publish %s : !slot
  frag.commit
  func.return
}
// -----
// A copy by TMA in another loop than the acquisition.
func.func @f(%x: memref<64x32xf16>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %ring = frag.ring 2 : !ring
  %s = frag.acquire %ring : !ring
  scf.for %i = %c0 to %n step %c1 {
    %a = frag.part %s[0] : !slot
    frag.copy tma %x[%i, 0] to %a[] : memref<64x32xf16> to memref<64x32xf16, #frag.shared<swizzle = 64>>
  }
  frag.publish %s : !slot
  func.return
}
// -----
// More shared memory than there is.
func.func @f(%x: memref<64x32xf16>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %ring = frag.ring 100 : !ring
  func.return
}
