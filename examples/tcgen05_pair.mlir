// C = A B^T in tensor memory by pairs of blocks (cta_group::2): tcgen05_ring.mlir for the two blocks of a cluster,
// which have tiles of C below each other. Each fetches its rows of A and half of B, and stores its tile; the role that
// multiplies is the even block's alone, for both. So each block has half of B in its memory, and reads half as much of it.
//
//   fragir run examples/tcgen05_pair.mlir --target sm_100a

!a = memref<128x64xbf16, #frag.shared<swizzle = 128>>
!b = memref<64x64xbf16, #frag.shared<swizzle = 128, pair = row>>
!sum = memref<128x64xf32, #frag.tensor>
!ring = !frag.ring<memref<128x64xbf16, #frag.shared<swizzle = 128>>, memref<64x64xbf16, #frag.shared<swizzle = 128, pair = row>>>
!slot = !frag.slot<memref<128x64xbf16, #frag.shared<swizzle = 128>>, memref<64x64xbf16, #frag.shared<swizzle = 128, pair = row>>>
!sums = !frag.ring<memref<128x64xf32, #frag.tensor>>
!held = !frag.slot<memref<128x64xf32, #frag.tensor>>
!A = memref<200x104xbf16>
!B = memref<136x104xbf16>
!C = memref<200x136xf32>

func.func @tcgen05_pair(%a: !A, %b: !B, %c: !C) attributes {frag.cluster = array<i64: 2, 1, 1>} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %k = arith.constant 104 : index
  %ring = frag.ring 4 : !ring
  %sums = frag.ring 2 : !sums
  frag.roles packed "load" warps [1, 1] {
    frag.for_tiles (%row, %col) of (200, 136) by (128, 64) persistent {
      scf.for %k0 = %c0 to %k step %c64 {
        %free = frag.acquire %ring : !ring
        %sa = frag.part %free[0] : !slot
        %sb = frag.part %free[1] : !slot
        frag.copy tma %a[%row, %k0] to %sa[] : !A to !a
        frag.copy tma %b[%col, %k0] to %sb[] : !B to !b
        frag.publish %free : !slot
      }
    }
  }, "multiply" warps [1, 1] {
    frag.for_tiles (%row, %col) of (200, 136) by (128, 64) persistent {
      %free = frag.acquire %sums : !sums
      %d = frag.part %free[0] : !held
      scf.for %k0 = %c0 to %k step %c64 {
        %later = arith.cmpi ne, %k0, %c0 : index
        %slot = frag.await %ring : !ring
        %sa = frag.part %slot[0] : !slot
        %sb = frag.part %slot[1] : !slot
        frag.tcgen05_mma pair %sa, %sb transposed into %d if %later : !a, !b into !sum
        frag.release %slot : !slot
      }
      frag.publish %free : !held
    }
  }, "store" warpgroups [1, 1] {
    frag.for_tiles (%row, %col) of (200, 136) by (128, 64) persistent {
      %full = frag.await %sums : !sums
      %d = frag.part %full[0] : !held
      %tile = frag.tcgen05_load %d : !sum -> !frag.tile<128x64xf32>
      frag.release %full : !held
      frag.store %tile, %c[%row, %col] masked : !frag.tile<128x64xf32>, !C
    }
  }
  func.return
}
