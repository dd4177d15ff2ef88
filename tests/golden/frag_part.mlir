// RUN: -p frag-place
// Two memories of a slot; one is filled by copies, one by a tile.
!ring = !frag.ring<memref<64x32xf16, #frag.shared<swizzle = 64>>, memref<64x16xf32, #frag.shared>>
!slot = !frag.slot<memref<64x32xf16, #frag.shared<swizzle = 64>>, memref<64x16xf32, #frag.shared>>
func.func @f(%x: memref<64x32xf16>, %z: memref<64x16xf32>, %y: memref<64x32xf16>, %w: memref<64x16xf32>) {
  %ring = frag.ring 1 : !ring
  %s = frag.acquire %ring : !ring
  %a = frag.part %s[0] : !slot
  %b = frag.part %s[1] : !slot
  frag.copy async %x[0, 0] to %a[] : memref<64x32xf16> to memref<64x32xf16, #frag.shared<swizzle = 64>>
  %0 = frag.load %z[0, 0] : memref<64x16xf32> -> !frag.tile<64x16xf32>
  frag.store %0, %b[0, 0] : !frag.tile<64x16xf32>, memref<64x16xf32, #frag.shared>
  frag.publish %s : !slot
  %t = frag.await %ring : !ring
  %c = frag.part %t[0] : !slot
  %d = frag.part %t[1] : !slot
  %1 = frag.load %c[0, 0] : memref<64x32xf16, #frag.shared<swizzle = 64>> -> !frag.tile<64x32xf16>
  frag.store %1, %y[0, 0] : !frag.tile<64x32xf16>, memref<64x32xf16>
  %2 = frag.load %d[0, 0] : memref<64x16xf32, #frag.shared> -> !frag.tile<64x16xf32>
  frag.store %2, %w[0, 0] : !frag.tile<64x16xf32>, memref<64x16xf32>
  frag.release %t : !slot
  func.return
}
