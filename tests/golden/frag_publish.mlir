// RUN: -p frag-place
// A slot is published in every branch, filled in one.
!ring = !frag.ring<memref<64x32xf16, #frag.shared<swizzle = 64>>>
!slot = !frag.slot<memref<64x32xf16, #frag.shared<swizzle = 64>>>
func.func @f(%x: memref<64x32xf16>, %n: index) {
  %c0 = arith.constant 0 : index
  %more = arith.cmpi slt, %c0, %n : index
  %ring = frag.ring 2 : !ring
  %s = frag.acquire %ring : !ring
  scf.if %more {
    %a = frag.part %s[0] : !slot
    frag.copy async %x[0, 0] to %a[] : memref<64x32xf16> to memref<64x32xf16, #frag.shared<swizzle = 64>>
    frag.publish %s : !slot
  } else {
    frag.publish %s : !slot
  }
  func.return
}
