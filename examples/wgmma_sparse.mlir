// A sparse wgmma: 64 x 64 by 64 x 64 with half of A left out, A packed in registers.
//
//   fragir run examples/wgmma_sparse.mlir --entry sparse --target sm_90a

!a = !frag.tile<64x32xf16>
!e = !frag.tile<64x16xui4>
!acc = !frag.tile<64x64xf32>
!shared = memref<64x64xf16, #frag.shared<swizzle = 128>>

// B lies in memory as N x K, K contiguous: `transposed`
func.func @sparse(%a: memref<64x32xf16>, %e: memref<64x16xui4>, %b: memref<64x64xf16>, %c: memref<64x64xf32>) {
  %sb = memref.alloc() : !shared
  frag.copy async %b[0, 0] to %sb[] : memref<64x64xf16> to !shared
  frag.commit
  %ta = frag.load %a[0, 0] : memref<64x32xf16> -> !a
  %te = frag.load %e[0, 0] : memref<64x16xui4> -> !e
  frag.wait 0
  frag.barrier
  %zero = arith.constant 0.0 : f32
  %0 = frag.fill %zero : !acc
  %1 = frag.wgmma %ta, %sb transposed, %0 sparse %te : !a, !shared, !acc, !e
  frag.store %1, %c[0, 0] : !acc, memref<64x64xf32>
  func.return
}
