// A wgmma tile with A and B from shared memory: one warpgroup multiplies 64x64 by 64x96. N = 96 is
// no power of two; wgmma has every multiple of 8 up to 256.
//
// The swizzle of each matrix is its own: 128 bytes for A, whose rows are 128 bytes wide, 64 bytes
// for B, whose 96 columns (192 bytes) are three panels of 64 bytes.
//
//   fragir run examples/wgmma_shared.mlir --target sm_90a

!acc = !frag.tile<64x96xf32>

func.func @wgmma_shared(%a: memref<64x64xf16>, %b: memref<64x96xf16>, %c: memref<64x96xf32>) {
  %sa = memref.alloc() : memref<64x64xf16, #frag.shared<swizzle = 128>>
  %sb = memref.alloc() : memref<64x96xf16, #frag.shared<swizzle = 64>>
  frag.copy async %a[0, 0] to %sa[] : memref<64x64xf16> to memref<64x64xf16, #frag.shared<swizzle = 128>>
  frag.copy async %b[0, 0] to %sb[] : memref<64x96xf16> to memref<64x96xf16, #frag.shared<swizzle = 64>>
  frag.commit
  frag.wait 0
  frag.barrier
  %zero = arith.constant 0.0 : f32
  %0 = frag.fill %zero : !acc
  %1 = frag.wgmma %sa, %sb, %0 : memref<64x64xf16, #frag.shared<swizzle = 128>>, memref<64x96xf16, #frag.shared<swizzle = 64>>, !acc
  frag.store %1, %c[0, 0] : !acc, memref<64x96xf32>
  func.return
}
