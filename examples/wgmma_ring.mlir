// Products that never wait for themselves: a ring of four slots, three filled ahead, and one product
// under way while the next begins. Each turn issues its product first, then waits for the one of the
// turn before (wgmma.wait_group 1), whose slot is free then, and starts the copies into it.
//
// No wait is written: `frag.release` waits for the products in flight that read the slot,
// `frag.await` for the slot's copies. The first product sets the sum (`if`), so nothing is zeroed.
//
//   fragir run examples/wgmma_ring.mlir --target sm_90a

!a = memref<64x64xf16, #frag.shared<swizzle = 128>>
!b = memref<64x128xf16, #frag.shared<swizzle = 128>>
!ring = !frag.ring<memref<64x64xf16, #frag.shared<swizzle = 128>>, memref<64x128xf16, #frag.shared<swizzle = 128>>>
!slot = !frag.slot<memref<64x64xf16, #frag.shared<swizzle = 128>>, memref<64x128xf16, #frag.shared<swizzle = 128>>>
!sum = !frag.tile<64x128xf32>
!flying = !frag.in_flight<!frag.tile<64x128xf32>>
!A = memref<128x320xf16>
!B = memref<320x128xf16>

func.func @wgmma_ring(%a: !A, %b: !B, %c: memref<128x128xf32>)
    attributes {frag.grid = #frag.grid<1, 2>, frag.warpgroups = array<i64: 1, 1>} {
  %by = frag.block_id y
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %c192 = arith.constant 192 : index
  %k = arith.constant 320 : index
  %row = arith.muli %by, %c64 : index
  %ring = frag.ring 4 : !ring
  scf.for %k0 = %c0 to %c192 step %c64 {
    %s = frag.acquire %ring : !ring
    %sa = frag.part %s[0] : !slot
    %sb = frag.part %s[1] : !slot
    frag.copy async %a[%row, %k0] to %sa[] : !A to !a
    frag.copy async %b[%k0, 0] to %sb[] : !B to !b
    frag.publish %s : !slot
  }
  %none = frag.no_slot : !slot
  %start = frag.undefined : !flying
  %t, %last = scf.for %k0 = %c0 to %k step %c64 iter_args(%sum = %start, %old = %none) -> (!flying, !slot) {
    %s = frag.await %ring : !ring
    %sa = frag.part %s[0] : !slot
    %sb = frag.part %s[1] : !slot
    %more = arith.cmpi ne, %k0, %c0 : index
    %next = frag.wgmma async %sa, %sb, %sum if %more : !a, !b, !flying
    frag.release %old : !slot
    %f = frag.acquire %ring : !ring
    %k3 = arith.addi %k0, %c192 : index
    %there = arith.cmpi slt, %k3, %k : index
    scf.if %there {
      %fa = frag.part %f[0] : !slot
      %fb = frag.part %f[1] : !slot
      frag.copy async %a[%row, %k3] to %fa[] : !A to !a
      frag.copy async %b[%k3, 0] to %fb[] : !B to !b
    }
    frag.publish %f : !slot
    scf.yield %next, %s : !flying, !slot
  }
  %d = frag.await %t : !flying
  frag.release %last : !slot
  frag.store %d, %c[%row, 0] : !sum, memref<128x128xf32>
  func.return
}
