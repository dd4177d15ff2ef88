// RUN: -p frag-place{target=sm_100a}
// Scales of one tile of a product: those of A come by TMA, in chunks; those of B, a matrix of rows by
// blocks, are put into the order of a chunk by threads.
!a = memref<128x128xf8E4M3FN, #frag.shared<swizzle = 128>>
!b = memref<64x128xf8E5M2, #frag.shared<swizzle = 128>>
!x = memref<1x1x2x256xf8E8M0FNU, #frag.shared>
!y = memref<128x4xf8E8M0FNU, #frag.layout<"row [32:16 4:4] col [4:1]">, #frag.shared>
!sfa = memref<128x4xf8E8M0FNU, #frag.tensor<scales>>
!sfb = memref<64x4xf8E8M0FNU, #frag.tensor<scales>>
!sum = memref<128x64xf32, #frag.tensor>
!slot = !frag.slot<memref<128x128xf8E4M3FN, #frag.shared<swizzle = 128>>, memref<64x128xf8E5M2, #frag.shared<swizzle = 128>>, memref<1x1x2x256xf8E8M0FNU, #frag.shared>>
!filled = !frag.slot<memref<128x4xf8E8M0FNU, #frag.layout<"row [32:16 4:4] col [4:1]">, #frag.shared>>
!held = !frag.slot<memref<128x64xf32, #frag.tensor>, memref<128x4xf8E8M0FNU, #frag.tensor<scales>>, memref<64x4xf8E8M0FNU, #frag.tensor<scales>>>
func.func @one(%a: memref<128x128xf8E4M3FN>, %b: memref<64x128xf8E5M2>, %x: memref<1x1x2x256xf8E8M0FNU>, %y: memref<64x4xf8E8M0FNU>, %c: memref<128x64xf32>) {
  %ring = frag.ring 1 : !frag.ring<memref<128x128xf8E4M3FN, #frag.shared<swizzle = 128>>, memref<64x128xf8E5M2, #frag.shared<swizzle = 128>>, memref<1x1x2x256xf8E8M0FNU, #frag.shared>>
  %scales = frag.ring 1 : !frag.ring<memref<128x4xf8E8M0FNU, #frag.layout<"row [32:16 4:4] col [4:1]">, #frag.shared>>
  %sums = frag.ring 1 : !frag.ring<memref<128x64xf32, #frag.tensor>, memref<128x4xf8E8M0FNU, #frag.tensor<scales>>, memref<64x4xf8E8M0FNU, #frag.tensor<scales>>>
  frag.roles packed "load" warps [1, 1] {
    %free = frag.acquire %ring : !frag.ring<memref<128x128xf8E4M3FN, #frag.shared<swizzle = 128>>, memref<64x128xf8E5M2, #frag.shared<swizzle = 128>>, memref<1x1x2x256xf8E8M0FNU, #frag.shared>>
    %sa = frag.part %free[0] : !slot
    %sb = frag.part %free[1] : !slot
    %sx = frag.part %free[2] : !slot
    frag.copy tma %a[0, 0] to %sa[] : memref<128x128xf8E4M3FN> to !a
    frag.copy tma %b[0, 0] to %sb[] : memref<64x128xf8E5M2> to !b
    frag.copy tma %x[0, 0, 0, 0] to %sx[0, 0] : memref<1x1x2x256xf8E8M0FNU> to !x
    frag.publish %free : !slot
  }, "scales" warps [1, 1] {
    %free = frag.acquire %scales : !frag.ring<memref<128x4xf8E8M0FNU, #frag.layout<"row [32:16 4:4] col [4:1]">, #frag.shared>>
    %sy = frag.part %free[0] : !filled
    frag.copy %y[0, 0] to %sy[] masked : memref<64x4xf8E8M0FNU> to !y
    frag.publish %free : !filled
  }, "multiply" warps [1, 1] {
    %no = arith.constant false
    %free = frag.acquire %sums : !frag.ring<memref<128x64xf32, #frag.tensor>, memref<128x4xf8E8M0FNU, #frag.tensor<scales>>, memref<64x4xf8E8M0FNU, #frag.tensor<scales>>>
    %d = frag.part %free[0] : !held
    %sfa = frag.part %free[1] : !held
    %sfb = frag.part %free[2] : !held
    %slot = frag.await %ring : !frag.ring<memref<128x128xf8E4M3FN, #frag.shared<swizzle = 128>>, memref<64x128xf8E5M2, #frag.shared<swizzle = 128>>, memref<1x1x2x256xf8E8M0FNU, #frag.shared>>
    %other = frag.await %scales : !frag.ring<memref<128x4xf8E8M0FNU, #frag.layout<"row [32:16 4:4] col [4:1]">, #frag.shared>>
    %sa = frag.part %slot[0] : !slot
    %sb = frag.part %slot[1] : !slot
    %sx = frag.part %slot[2] : !slot
    %sy = frag.part %other[0] : !filled
    frag.tcgen05_copy %sx to %sfa : !x to !sfa
    frag.tcgen05_copy %sy to %sfb : !y to !sfb
    frag.tcgen05_mma %sa, %sb transposed scaled %sfa, %sfb into %d if %no : !a, !b scaled !sfa, !sfb into !sum
    frag.release %slot : !slot
    frag.release %other : !filled
    frag.publish %free : !held
  }, "store" warpgroups [1, 1] {
    %full = frag.await %sums : !frag.ring<memref<128x64xf32, #frag.tensor>, memref<128x4xf8E8M0FNU, #frag.tensor<scales>>, memref<64x4xf8E8M0FNU, #frag.tensor<scales>>>
    %d = frag.part %full[0] : !held
    %t = frag.tcgen05_load %d : !sum -> !frag.tile<128x64xf32>
    frag.release %full : !held
    frag.store %t, %c[0, 0] : !frag.tile<128x64xf32>, memref<128x64xf32>
  }
  func.return
}
