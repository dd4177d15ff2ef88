// RUN: -p frag-place
!ring = !frag.ring<memref<64x32xf16, #frag.shared<swizzle = 64>>, memref<32x64xf16, #frag.shared<swizzle = 128>>>
!slot = !frag.slot<memref<64x32xf16, #frag.shared<swizzle = 64>>, memref<32x64xf16, #frag.shared<swizzle = 128>>>
// -----
// Never released.
func.func @f(%n: index, %c: i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %ring = frag.ring 2 : !ring
  %s = frag.await %ring : !ring
  func.return
}
// -----
// Published, though it was awaited.
func.func @f(%n: index, %c: i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %ring = frag.ring 2 : !ring
  %s = frag.await %ring : !ring
  frag.publish %s : !slot
  func.return
}
// -----
// Carried twice.
func.func @f(%n: index, %c: i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %ring = frag.ring 2 : !ring
  %s = frag.await %ring : !ring
  %x, %y = scf.for %i = %c0 to %n step %c1 iter_args(%p = %s, %q = %s) -> (!slot, !slot) {
    scf.yield %p, %q : !slot, !slot
  }
  frag.release %x : !slot
  frag.release %y : !slot
  func.return
}
// -----
// What the loop carries is lost.
func.func @f(%n: index, %c: i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %ring = frag.ring 2 : !ring
  %s = frag.await %ring : !ring
  %x = scf.for %i = %c0 to %n step %c1 iter_args(%p = %s) -> (!slot) {
    %t = frag.await %ring : !ring
    scf.yield %t : !slot
  }
  frag.release %x : !slot
  func.return
}
// -----
// The result of a loop is lost.
func.func @f(%n: index, %c: i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %ring = frag.ring 2 : !ring
  %s = frag.await %ring : !ring
  %x = scf.for %i = %c0 to %n step %c1 iter_args(%p = %s) -> (!slot) {
    scf.yield %p : !slot
  }
  func.return
}
// -----
// An acquired slot is carried into a loop that releases it.
func.func @f(%n: index, %c: i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %ring = frag.ring 2 : !ring
  %s = frag.acquire %ring : !ring
  %x = scf.for %i = %c0 to %n step %c1 iter_args(%p = %s) -> (!slot) {
    frag.release %p : !slot
    %t = frag.await %ring : !ring
    scf.yield %t : !slot
  }
  frag.release %x : !slot
  func.return
}
// -----
// Returned from a branch, and lost.
func.func @f(%n: index, %c: i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %ring = frag.ring 2 : !ring
  %s = frag.await %ring : !ring
  %x = scf.if %c -> (!slot) {
    scf.yield %s : !slot
  } else {
    %t = frag.no_slot : !slot
    scf.yield %t : !slot
  }
  frag.release %x : !slot
  func.return
}
