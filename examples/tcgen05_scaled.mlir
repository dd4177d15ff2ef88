// C = A B^T in the microscaling format mxfp8, in tensor memory: e4m3 with a power of two for each 32 of K.
// A warp fetches A, B and the scales of both by TMA; a thread of another copies the scales to tensor memory
// (tcgen05.cp) and starts the products that read them there (kind::mxf8f6f4); four warps store finished sums.
//
// Scales lie in memory as the tensor cores take them: the 512 bytes of 128 rows by four blocks of K together,
// the byte of row r and block j at 16 (r % 32) + 4 (r / 32) + j.
//
//   fragir run examples/tcgen05_scaled.mlir --target sm_100a

!a = memref<128x128xf8E4M3FN, #frag.shared<swizzle = 128>>
!b = memref<64x128xf8E4M3FN, #frag.shared<swizzle = 128>>
!x = memref<1x1x2x256xf8E8M0FNU, #frag.shared>
!sfa = memref<128x4xf8E8M0FNU, #frag.tensor<scales>>
!sfb = memref<64x4xf8E8M0FNU, #frag.tensor<scales>>
!sum = memref<128x64xf32, #frag.tensor>
!ring = !frag.ring<memref<128x128xf8E4M3FN, #frag.shared<swizzle = 128>>, memref<64x128xf8E4M3FN, #frag.shared<swizzle = 128>>, memref<1x1x2x256xf8E8M0FNU, #frag.shared>, memref<1x1x2x256xf8E8M0FNU, #frag.shared>>
!slot = !frag.slot<memref<128x128xf8E4M3FN, #frag.shared<swizzle = 128>>, memref<64x128xf8E4M3FN, #frag.shared<swizzle = 128>>, memref<1x1x2x256xf8E8M0FNU, #frag.shared>, memref<1x1x2x256xf8E8M0FNU, #frag.shared>>
!sums = !frag.ring<memref<128x64xf32, #frag.tensor>, memref<128x4xf8E8M0FNU, #frag.tensor<scales>>, memref<64x4xf8E8M0FNU, #frag.tensor<scales>>>
!held = !frag.slot<memref<128x64xf32, #frag.tensor>, memref<128x4xf8E8M0FNU, #frag.tensor<scales>>, memref<64x4xf8E8M0FNU, #frag.tensor<scales>>>
!A = memref<200x304xf8E4M3FN>
!B = memref<64x304xf8E4M3FN>
!X = memref<2x3x2x256xf8E8M0FNU>
!Y = memref<1x3x2x256xf8E8M0FNU>
!C = memref<200x64xf32>

func.func @tcgen05_scaled(%a: !A, %b: !B, %x: !X, %y: !Y, %c: !C) {
  %c0 = arith.constant 0 : index
  %c128 = arith.constant 128 : index
  %k = arith.constant 304 : index
  %ring = frag.ring 4 : !ring
  %sums = frag.ring 2 : !sums
  frag.roles packed "load" warps [1, 1] {
    frag.for_tiles (%row, %col) of (200, 64) by (128, 64) persistent {
      scf.for %k0 = %c0 to %k step %c128 {
        %i = arith.divui %row, %c128 : index
        %h = arith.divui %k0, %c128 : index
        %free = frag.acquire %ring : !ring
        %sa = frag.part %free[0] : !slot
        %sb = frag.part %free[1] : !slot
        %sx = frag.part %free[2] : !slot
        %sy = frag.part %free[3] : !slot
        frag.copy tma %a[%row, %k0] to %sa[] : !A to !a
        frag.copy tma %b[%col, %k0] to %sb[] : !B to !b
        frag.copy tma %x[%i, %h, 0, 0] to %sx[0, 0] : !X to !x
        frag.copy tma %y[0, %h, 0, 0] to %sy[0, 0] : !Y to !x
        frag.publish %free : !slot
      }
    }
  }, "multiply" warps [1, 1] {
    frag.for_tiles (%row, %col) of (200, 64) by (128, 64) persistent {
      %free = frag.acquire %sums : !sums
      %d = frag.part %free[0] : !held
      %sfa = frag.part %free[1] : !held
      %sfb = frag.part %free[2] : !held
      scf.for %k0 = %c0 to %k step %c128 {
        %later = arith.cmpi ne, %k0, %c0 : index
        %slot = frag.await %ring : !ring
        %sa = frag.part %slot[0] : !slot
        %sb = frag.part %slot[1] : !slot
        %sx = frag.part %slot[2] : !slot
        %sy = frag.part %slot[3] : !slot
        frag.tcgen05_copy %sx to %sfa : !x to !sfa
        frag.tcgen05_copy %sy to %sfb : !x to !sfb
        frag.tcgen05_mma %sa, %sb transposed scaled %sfa, %sfb into %d if %later : !a, !b scaled !sfa, !sfb into !sum
        frag.release %slot : !slot
      }
      frag.publish %free : !held
    }
  }, "store" warpgroups [1, 1] {
    frag.for_tiles (%row, %col) of (200, 64) by (128, 64) persistent {
      %full = frag.await %sums : !sums
      %d = frag.part %full[0] : !held
      %tile = frag.tcgen05_load %d : !sum -> !frag.tile<128x64xf32>
      frag.release %full : !held
      frag.store %tile, %c[%row, %col] masked : !frag.tile<128x64xf32>, !C
    }
  }
  func.return
}
