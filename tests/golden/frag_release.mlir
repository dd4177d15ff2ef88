// RUN: -p frag-place
// What a loop carries is released a turn later.
!ring = !frag.ring<memref<64x32xf16, #frag.shared<swizzle = 64>>>
!slot = !frag.slot<memref<64x32xf16, #frag.shared<swizzle = 64>>>
func.func @f(%x: memref<?x32xf16> {frag.sizes = ["m", "k"]}, %y: memref<?x32xf16> {frag.sizes = ["m", "k"]}) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %m = memref.dim %x, %c0 : memref<?x32xf16>
  %ring = frag.ring 2 : !ring
  %none = frag.no_slot : !slot
  %last = scf.for %i = %c0 to %m step %c64 iter_args(%old = %none) -> (!slot) {
    %s = frag.acquire %ring : !ring
    %a = frag.part %s[0] : !slot
    frag.copy async %x[%i, 0] to %a[] masked : memref<?x32xf16> to memref<64x32xf16, #frag.shared<swizzle = 64>>
    frag.publish %s : !slot
    frag.release %old : !slot
    %t = frag.await %ring : !ring
    %b = frag.part %t[0] : !slot
    %0 = frag.load %b[0, 0] : memref<64x32xf16, #frag.shared<swizzle = 64>> -> !frag.tile<64x32xf16>
    frag.store %0, %y[%i, 0] masked : !frag.tile<64x32xf16>, memref<?x32xf16>
    scf.yield %t : !slot
  }
  frag.release %last : !slot
  func.return
}
