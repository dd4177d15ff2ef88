// RUN: -p frag-place
// Into one of two stages, masked and in the background; then at once.
func.func @f(%a: memref<?x?xf16>, %i: index, %s: index) {
  %m = memref.alloc() : memref<2x64x32xf16, #frag.shared<swizzle = 64>>
  frag.copy async %a[%i, 0] to %m[%s] masked : memref<?x?xf16> to memref<2x64x32xf16, #frag.shared<swizzle = 64>>
  frag.commit
  frag.wait 0
  frag.copy %a[%i, 32] to %m[1] : memref<?x?xf16> to memref<2x64x32xf16, #frag.shared<swizzle = 64>>
  frag.barrier
  func.return
}
