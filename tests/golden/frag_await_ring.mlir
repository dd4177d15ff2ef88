// RUN: -p frag-place
// Two slots are filled ahead of the one that is read; what is filled last is never read.
!ring = !frag.ring<memref<64x32xf16, #frag.shared<swizzle = 64>>>
!slot = !frag.slot<memref<64x32xf16, #frag.shared<swizzle = 64>>>
func.func @f(%x: memref<256x32xf16>, %y: memref<128x32xf16>) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %ring = frag.ring 3 : !ring
  scf.for %i = %c0 to %c128 step %c64 {
    %s = frag.acquire %ring : !ring
    %a = frag.part %s[0] : !slot
    frag.copy async %x[%i, 0] to %a[] : memref<256x32xf16> to memref<64x32xf16, #frag.shared<swizzle = 64>>
    frag.publish %s : !slot
  }
  scf.for %i = %c0 to %c128 step %c64 {
    %t = frag.await %ring : !ring
    %b = frag.part %t[0] : !slot
    %tile = frag.load %b[0, 0] : memref<64x32xf16, #frag.shared<swizzle = 64>> -> !frag.tile<64x32xf16>
    frag.release %t : !slot
    frag.store %tile, %y[%i, 0] : !frag.tile<64x32xf16>, memref<128x32xf16>
    %s = frag.acquire %ring : !ring
    %a = frag.part %s[0] : !slot
    %ahead = arith.addi %i, %c128 : index
    frag.copy async %x[%ahead, 0] to %a[] : memref<256x32xf16> to memref<64x32xf16, #frag.shared<swizzle = 64>>
    frag.publish %s : !slot
  }
  func.return
}
