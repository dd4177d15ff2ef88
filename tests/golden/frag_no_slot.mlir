// RUN: -p frag-place
// What a branch gives: the slot that was awaited, or none.
!ring = !frag.ring<memref<64x32xf16, #frag.shared<swizzle = 64>>>
!slot = !frag.slot<memref<64x32xf16, #frag.shared<swizzle = 64>>>
func.func @f(%x: memref<64x32xf16>, %n: index) {
  %c0 = arith.constant 0 : index
  %more = arith.cmpi slt, %c0, %n : index
  %ring = frag.ring 2 : !ring
  %s = frag.acquire %ring : !ring
  frag.publish %s : !slot
  %held = scf.if %more -> (!slot) {
    %t = frag.await %ring : !ring
    scf.yield %t : !slot
  } else {
    %none = frag.no_slot : !slot
    scf.yield %none : !slot
  }
  frag.release %held : !slot
  func.return
}
