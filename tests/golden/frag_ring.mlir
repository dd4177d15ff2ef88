// RUN: -p frag-place
// A ring of three slots, each of two parts; a loop carries the slot of the turn before.
!ring = !frag.ring<memref<64x32xf16, #frag.shared<swizzle = 64>>, memref<32x64xf16, #frag.shared<swizzle = 128>>>
!slot = !frag.slot<memref<64x32xf16, #frag.shared<swizzle = 64>>, memref<32x64xf16, #frag.shared<swizzle = 128>>>
func.func @f(%n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %ring = frag.ring 3 : !ring
  %s = frag.acquire %ring : !ring
  %a = frag.part %s[0] : !slot
  %b = frag.part %s[1] : !slot
  frag.publish %s : !slot
  %none = frag.no_slot : !slot
  %last = scf.for %i = %c0 to %n step %c1 iter_args(%old = %none) -> (!slot) {
    %t = frag.await %ring : !ring
    frag.release %old : !slot
    scf.yield %t : !slot
  }
  frag.release %last : !slot
  func.return
}

// Slots shared out among two roles, in their turns.
func.func @shared_out(%n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %ring = frag.ring 2 turns "products" : !frag.ring<memref<16x16xf16, #frag.shared>>
  frag.roles "even" warps [1, 1] {
    scf.for %i = %c0 to %n step %c1 {
      frag.take_turn "products"
      scf.for %j = %c0 to %n step %c1 {
        %s = frag.await %ring : !frag.ring<memref<16x16xf16, #frag.shared>>
        frag.release %s : !frag.slot<memref<16x16xf16, #frag.shared>>
      }
      frag.pass_turn "products"
    }
  }, "odd" warps [1, 1] {
    scf.for %i = %c0 to %n step %c1 {
      frag.take_turn "products"
      %s = frag.await %ring : !frag.ring<memref<16x16xf16, #frag.shared>>
      frag.release %s : !frag.slot<memref<16x16xf16, #frag.shared>>
      frag.pass_turn "products"
    }
  }
  func.return
}
