// RUN: -p frag-place
!ring = !frag.ring<memref<64x32xf16, #frag.shared<swizzle = 64>>, memref<32x64xf16, #frag.shared<swizzle = 128>>>
!slot = !frag.slot<memref<64x32xf16, #frag.shared<swizzle = 64>>, memref<32x64xf16, #frag.shared<swizzle = 128>>>
// -----
// No slot.
func.func @f(%n: index, %c: i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %ring = frag.ring 0 : !ring
  func.return
}
// -----
// In a loop.
func.func @f(%n: index, %c: i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    %ring = frag.ring 2 : !ring
  }
  func.return
}
// -----
// Of global memory.
func.func @f(%n: index, %c: i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %ring = frag.ring 2 : !frag.ring<memref<64x32xf16>>
  func.return
}
// -----
// A size that is not known.
func.func @f(%n: index, %c: i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %ring = frag.ring 2 : !frag.ring<memref<?x32xf16, #frag.shared>>
  func.return
}
// -----
// A layout that puts several elements at one place.
func.func @f(%n: index, %c: i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %ring = frag.ring 2 : !frag.ring<memref<64x32xf16, #frag.layout<"row [64:1] col [32:1]">, #frag.shared>>
  func.return
}
// -----
// No part.
func.func @f(%n: index, %c: i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %ring = frag.ring 2 : !frag.ring<>
  func.return
}
// -----
// A slot that is awaited when the turn is over.
func.func @f() {
  %ring = frag.ring 2 turns "products" : !frag.ring<memref<16x16xf16, #frag.shared>>
  frag.roles "even" warps [1, 1] {
    frag.take_turn "products"
    frag.pass_turn "products"
    %s = frag.await %ring : !frag.ring<memref<16x16xf16, #frag.shared>>
    frag.release %s : !frag.slot<memref<16x16xf16, #frag.shared>>
  }, "odd" warps [1, 1] {
    frag.take_turn "products"
    frag.pass_turn "products"
  }
  func.return
}
// -----
// A slot that is awaited in another turn.
func.func @f() {
  %ring = frag.ring 2 turns "sums" : !frag.ring<memref<16x16xf16, #frag.shared>>
  frag.roles "even" warps [1, 1] {
    frag.take_turn "products"
    %s = frag.await %ring : !frag.ring<memref<16x16xf16, #frag.shared>>
    frag.release %s : !frag.slot<memref<16x16xf16, #frag.shared>>
    frag.pass_turn "products"
  }, "odd" warps [1, 1] {
    frag.take_turn "products"
    frag.pass_turn "products"
  }
  func.return
}
// -----
// A slot that is awaited outside of roles.
func.func @f() {
  %ring = frag.ring 2 turns "products" : !frag.ring<memref<16x16xf16, #frag.shared>>
  %s = frag.await %ring : !frag.ring<memref<16x16xf16, #frag.shared>>
  frag.release %s : !frag.slot<memref<16x16xf16, #frag.shared>>
  func.return
}
