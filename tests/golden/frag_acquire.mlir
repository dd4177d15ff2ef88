// RUN: -p frag-place
// Slots pass through a branch and a loop that carries one while it fills the next.
!ring = !frag.ring<memref<64x32xf16, #frag.shared<swizzle = 64>>, memref<32x64xf16, #frag.shared<swizzle = 128>>>
!slot = !frag.slot<memref<64x32xf16, #frag.shared<swizzle = 64>>, memref<32x64xf16, #frag.shared<swizzle = 128>>>
func.func @f(%n: index, %c: i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %ring = frag.ring 2 : !ring
  %s = frag.acquire %ring : !ring
  %last = scf.for %i = %c0 to %n step %c1 iter_args(%held = %s) -> (!slot) {
    %a = frag.part %held[0] : !slot
    frag.publish %held : !slot
    %t = frag.await %ring : !ring
    scf.if %c {
      frag.release %t : !slot
    } else {
      frag.release %t : !slot
    }
    %next = frag.acquire %ring : !ring
    scf.yield %next : !slot
  }
  frag.publish %last : !slot
  func.return
}
