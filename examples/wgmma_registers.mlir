// A wgmma tile with A from registers: one warpgroup (four warps) multiplies 64x64 by 64x128.
//
// wgmma reads B from shared memory only, swizzled; A is a tile, loaded like any other and given the
// layout that wgmma demands. B is K x N in memory, so N is contiguous ("MN-major"); @k_major has
// it the other way round, N x K, and says `transposed`.
//
//   fragir run examples/wgmma_registers.mlir --entry mn_major --target sm_90a

!a = !frag.tile<64x64xf16>
!acc = !frag.tile<64x128xf32>

func.func @mn_major(%a: memref<64x64xf16>, %b: memref<64x128xf16>, %c: memref<64x128xf32>) {
  %sb = memref.alloc() : memref<64x128xf16, #frag.shared<swizzle = 128>>
  frag.copy async %b[0, 0] to %sb[] : memref<64x128xf16> to memref<64x128xf16, #frag.shared<swizzle = 128>>
  frag.commit
  %ta = frag.load %a[0, 0] : memref<64x64xf16> -> !a
  frag.wait 0
  frag.barrier
  %zero = arith.constant 0.0 : f32
  %0 = frag.fill %zero : !acc
  %1 = frag.wgmma %ta, %sb, %0 : !a, memref<64x128xf16, #frag.shared<swizzle = 128>>, !acc
  frag.store %1, %c[0, 0] : !acc, memref<64x128xf32>
  func.return
}

func.func @k_major(%a: memref<64x64xf16>, %b: memref<128x64xf16>, %c: memref<64x128xf32>) {
  %sb = memref.alloc() : memref<128x64xf16, #frag.shared<swizzle = 128>>
  frag.copy async %b[0, 0] to %sb[] : memref<128x64xf16> to memref<128x64xf16, #frag.shared<swizzle = 128>>
  frag.commit
  %ta = frag.load %a[0, 0] : memref<64x64xf16> -> !a
  frag.wait 0
  frag.barrier
  %zero = arith.constant 0.0 : f32
  %0 = frag.fill %zero : !acc
  %1 = frag.wgmma %ta, %sb transposed, %0 : !a, memref<128x64xf16, #frag.shared<swizzle = 128>>, !acc
  frag.store %1, %c[0, 0] : !acc, memref<64x128xf32>
  func.return
}
