// RUN: -p frag-place
!ring = !frag.ring<memref<64x32xf16, #frag.shared<swizzle = 64>>, memref<32x64xf16, #frag.shared<swizzle = 128>>>
!slot = !frag.slot<memref<64x32xf16, #frag.shared<swizzle = 64>>, memref<32x64xf16, #frag.shared<swizzle = 128>>>
// -----
// Never published.
func.func @f(%n: index, %c: i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %ring = frag.ring 2 : !ring
  %s = frag.acquire %ring : !ring
  func.return
}
// -----
// Published twice.
func.func @f(%n: index, %c: i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %ring = frag.ring 2 : !ring
  %s = frag.acquire %ring : !ring
  frag.publish %s : !slot
  frag.publish %s : !slot
  func.return
}
// -----
// Released, though it was acquired.
func.func @f(%n: index, %c: i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %ring = frag.ring 2 : !ring
  %s = frag.acquire %ring : !ring
  frag.release %s : !slot
  func.return
}
// -----
// Published in one branch.
func.func @f(%n: index, %c: i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %ring = frag.ring 2 : !ring
  %s = frag.acquire %ring : !ring
  scf.if %c {
    frag.publish %s : !slot
  }
  func.return
}
// -----
// Published in one of two branches.
func.func @f(%n: index, %c: i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %ring = frag.ring 2 : !ring
  %s = frag.acquire %ring : !ring
  scf.if %c {
    frag.publish %s : !slot
  } else {
  }
  func.return
}
// -----
// Published in a loop.
func.func @f(%n: index, %c: i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %ring = frag.ring 2 : !ring
  %s = frag.acquire %ring : !ring
  scf.for %i = %c0 to %n step %c1 {
    frag.publish %s : !slot
  }
  func.return
}
// -----
// A memory.
func.func @f(%n: index, %c: i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %ring = memref.alloc() : memref<64x32xf16, #frag.shared>
  %s = frag.acquire %ring : memref<64x32xf16, #frag.shared>
  func.return
}
