// RUN: -p frag-place
// All words, to global and to shared memory.
func.func @f(%a: memref<16x32xf16>, %d: memref<?x?xf16>, %e: memref<3x32x16xf16>, %i: index) {
  %0 = frag.load %a[0, 0] : memref<16x32xf16> -> !frag.tile<16x32xf16>
  frag.store %0, %d[%i, %i] masked : !frag.tile<16x32xf16>, memref<?x?xf16>
  frag.store %0, %e[2, 0, 0] transposed : !frag.tile<16x32xf16>, memref<3x32x16xf16>
  %m = memref.alloc() : memref<16x32xf16, #frag.shared<swizzle = 32>>
  frag.store %0, %m[0, 0] : !frag.tile<16x32xf16>, memref<16x32xf16, #frag.shared<swizzle = 32>>
  func.return
}
