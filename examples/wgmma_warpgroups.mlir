// wgmma by four warpgroups, 512 threads: `frag.warpgroups = array<i64: 2, 2>` cuts C (128x256) into
// two block rows and two block columns; each warpgroup computes 64x128 of it, in one wgmma for every
// 16 of K. All read the same A and B in shared memory, each from its own rows and columns on.
//
//   fragir run examples/wgmma_warpgroups.mlir --target sm_90a

!acc = !frag.tile<128x256xf32>

func.func @wgmma_warpgroups(%a: memref<128x64xbf16>, %b: memref<64x256xbf16>, %c: memref<128x256xf32>) attributes {frag.warpgroups = array<i64: 2, 2>} {
  %sa = memref.alloc() : memref<128x64xbf16, #frag.shared<swizzle = 128>>
  %sb = memref.alloc() : memref<64x256xbf16, #frag.shared<swizzle = 128>>
  frag.copy async %a[0, 0] to %sa[] : memref<128x64xbf16> to memref<128x64xbf16, #frag.shared<swizzle = 128>>
  frag.copy async %b[0, 0] to %sb[] : memref<64x256xbf16> to memref<64x256xbf16, #frag.shared<swizzle = 128>>
  frag.commit
  frag.wait 0
  frag.barrier
  %zero = arith.constant 0.0 : f32
  %0 = frag.fill %zero : !acc
  %1 = frag.wgmma %sa, %sb, %0 : memref<128x64xbf16, #frag.shared<swizzle = 128>>, memref<64x256xbf16, #frag.shared<swizzle = 128>>, !acc
  frag.store %1, %c[0, 0] : !acc, memref<128x256xf32>
  func.return
}
