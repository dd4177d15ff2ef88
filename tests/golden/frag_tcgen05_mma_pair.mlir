// RUN: -p frag-place{target=sm_100a}
// A tile of each of two blocks: fetched by both, multiplied by one, stored by both.
!a = memref<128x64xbf16, #frag.shared<swizzle = 128>>
!b = memref<64x64xbf16, #frag.shared<swizzle = 128, pair = row>>
!sum = memref<128x64xf32, #frag.tensor>
!slot = !frag.slot<memref<128x64xbf16, #frag.shared<swizzle = 128>>, memref<64x64xbf16, #frag.shared<swizzle = 128, pair = row>>>
!held = !frag.slot<memref<128x64xf32, #frag.tensor>>
func.func @one(%a: memref<128x64xbf16>, %b: memref<64x64xbf16>, %c: memref<128x64xf32>) attributes {frag.cluster = array<i64: 2, 1, 1>} {
  %ring = frag.ring 1 : !frag.ring<memref<128x64xbf16, #frag.shared<swizzle = 128>>, memref<64x64xbf16, #frag.shared<swizzle = 128, pair = row>>>
  %sums = frag.ring 1 : !frag.ring<memref<128x64xf32, #frag.tensor>>
  frag.roles packed "load" warps [1, 1] {
    %free = frag.acquire %ring : !frag.ring<memref<128x64xbf16, #frag.shared<swizzle = 128>>, memref<64x64xbf16, #frag.shared<swizzle = 128, pair = row>>>
    %sa = frag.part %free[0] : !slot
    %sb = frag.part %free[1] : !slot
    frag.copy tma %a[0, 0] to %sa[] : memref<128x64xbf16> to !a
    frag.copy tma %b[0, 0] to %sb[] : memref<64x64xbf16> to !b
    frag.publish %free : !slot
  }, "multiply" warps [1, 1] {
    %no = arith.constant false
    %free = frag.acquire %sums : !frag.ring<memref<128x64xf32, #frag.tensor>>
    %d = frag.part %free[0] : !held
    %slot = frag.await %ring : !frag.ring<memref<128x64xbf16, #frag.shared<swizzle = 128>>, memref<64x64xbf16, #frag.shared<swizzle = 128, pair = row>>>
    %sa = frag.part %slot[0] : !slot
    %sb = frag.part %slot[1] : !slot
    frag.tcgen05_mma pair %sa, %sb transposed into %d if %no : !a, !b into !sum
    frag.release %slot : !slot
    frag.publish %free : !held
  }, "store" warpgroups [1, 1] {
    %full = frag.await %sums : !frag.ring<memref<128x64xf32, #frag.tensor>>
    %d = frag.part %full[0] : !held
    %t = frag.tcgen05_load %d : !sum -> !frag.tile<128x64xf32>
    frag.release %full : !held
    frag.store %t, %c[0, 0] : !frag.tile<128x64xf32>, memref<128x64xf32>
  }
  func.return
}
