// RUN: -p frag-place{target=sm_90a}
// In from memory of two and three dimensions, one of columns side by side, and out again.
func.func @f(%a: memref<?x?xf16> {frag.sizes = ["m", "n"]}, %b: memref<2x256x64xf16>,
             %t: memref<?x?xf16, strided<[1, 64]>> {frag.sizes = ["m", "n"]},
             %c: memref<?x?xf16> {frag.sizes = ["m", "n"]},
             %d: memref<?x?xf16, strided<[1, 64]>> {frag.sizes = ["m", "n"]})
    attributes {frag.cluster = array<i64: 2, 1, 1>, frag.grid = #frag.grid<m by 32>} {
  %x = frag.block_id x
  %c32 = arith.constant 32 : index
  %i = arith.muli %x, %c32 : index
  %r = frag.cluster_rank
  %m = memref.alloc() : memref<2x64x64xf16, #frag.shared<swizzle = 128>>
  frag.copy tma %a[%i, 0] to %m[0] : memref<?x?xf16> to memref<2x64x64xf16, #frag.shared<swizzle = 128>>
  frag.copy tma %b[1, 32, 0] to %m[1] multicast : memref<2x256x64xf16> to memref<2x64x64xf16, #frag.shared<swizzle = 128>>
  %n = memref.alloc() : memref<32x16xf16, #frag.layout<"row [32:1] col [16:32]">, #frag.shared>
  frag.copy tma %t[%i, 8] to %n[] : memref<?x?xf16, strided<[1, 64]>> to memref<32x16xf16, #frag.layout<"row [32:1] col [16:32]">, #frag.shared>
  frag.copy tma %m[%r] to %c[%i, 32] : memref<2x64x64xf16, #frag.shared<swizzle = 128>> to memref<?x?xf16>
  frag.copy tma %n[] to %d[%i, 16] : memref<32x16xf16, #frag.layout<"row [32:1] col [16:32]">, #frag.shared> to memref<?x?xf16, strided<[1, 64]>>
  func.return
}
