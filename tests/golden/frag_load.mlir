// RUN: -p frag-place
// All words: from global memory, transposed, masked, with another value outside, broadcast; from shared memory.
func.func @f(%a: memref<?x?xf16>, %b: memref<?xf16>, %c: memref<4x32x16xf16, strided<[512, 1, 32]>>, %i: index, %x: f16) {
  %0 = frag.load %a[%i, 0] masked : memref<?x?xf16> -> !frag.tile<16x32xf16>
  %1 = frag.load %a[0, %i] transposed masked : memref<?x?xf16> -> !frag.tile<16x32xf16>
  %2 = frag.load %b[%i] masked broadcast : memref<?xf16> -> !frag.tile<16x32xf16>
  %3 = frag.load %c[%i, 0, 0] transposed : memref<4x32x16xf16, strided<[512, 1, 32]>> -> !frag.tile<16x32xf16>
  %m = memref.alloc() : memref<16x32xf16, #frag.shared<swizzle = 64>>
  %4 = frag.load %m[0, 0] : memref<16x32xf16, #frag.shared<swizzle = 64>> -> !frag.tile<16x32xf16, #frag.mma<m16n8k16.f16, a>>
  %5 = frag.load %a[%i, 0] transposed masked other %x : memref<?x?xf16> -> !frag.tile<16x32xf16>
  %6 = frag.load %b[%i] masked other %x broadcast : memref<?xf16> -> !frag.tile<16x32xf16>
  func.return
}
