// RUN: 
// One warp fetches, two warpgroups multiply; a kernel without registers to move.
!slot = !frag.slot<memref<64x64xf16, #frag.shared<swizzle = 128>>>
func.func @two(%a: memref<64x64xf16>, %c: memref<64x64xf16>) {
  %ring = frag.ring 2 : !frag.ring<memref<64x64xf16, #frag.shared<swizzle = 128>>>
  frag.roles "load" warps [1, 1] registers 24 {
    %s = frag.acquire %ring : !frag.ring<memref<64x64xf16, #frag.shared<swizzle = 128>>>
    %sa = frag.part %s[0] : !slot
    frag.copy tma %a[0, 0] to %sa[] : memref<64x64xf16> to memref<64x64xf16, #frag.shared<swizzle = 128>>
    frag.publish %s : !slot
  }, "multiply" warpgroups [2, 1] registers 240 {
    %s = frag.await %ring : !frag.ring<memref<64x64xf16, #frag.shared<swizzle = 128>>>
    %sa = frag.part %s[0] : !slot
    %t = frag.load %sa[0, 0] : memref<64x64xf16, #frag.shared<swizzle = 128>> -> !frag.tile<64x64xf16>
    frag.release %s : !slot
    frag.store %t, %c[0, 0] : !frag.tile<64x64xf16>, memref<64x64xf16>
  }
  func.return
}
func.func @plain() {
  frag.roles "first" warps [1, 2] {
    frag.barrier
  }, "second" warps [2, 2] {
    frag.barrier
  }
  func.return
}
