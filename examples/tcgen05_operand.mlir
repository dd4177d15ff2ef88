// One tile of attention, O = softmax(Q K^T / 8) V, in tensor memory: 128 queries and keys, 64 columns.
// A warp fetches Q, K and V; a thread of another starts both products; a warpgroup loads the scores, whose
// rows its threads hold alone, and stores the weights back as f16 (tcgen05.st): the second product reads them
// there as its A, packed two in a column.
//
//   fragir run examples/tcgen05_operand.mlir --target sm_100a

!q = memref<128x64xf16, #frag.shared<swizzle = 128>>
!ring = !frag.ring<memref<128x64xf16, #frag.shared<swizzle = 128>>, memref<128x64xf16, #frag.shared<swizzle = 128>>, memref<128x64xf16, #frag.shared<swizzle = 128>>>
!slot = !frag.slot<memref<128x64xf16, #frag.shared<swizzle = 128>>, memref<128x64xf16, #frag.shared<swizzle = 128>>, memref<128x64xf16, #frag.shared<swizzle = 128>>>
!scores = memref<128x128xf32, #frag.tensor>
!scored = !frag.slot<memref<128x128xf32, #frag.tensor>>
!weights = memref<128x128xf16, #frag.tensor<operand>>
!weighed = !frag.slot<memref<128x128xf16, #frag.tensor<operand>>>
!sums = memref<128x64xf32, #frag.tensor>
!summed = !frag.slot<memref<128x64xf32, #frag.tensor>>
!tile = !frag.tile<128x128xf32>
!out = !frag.tile<128x64xf32>

func.func @tcgen05_operand(%q: memref<128x64xf16>, %k: memref<128x64xf16>, %v: memref<128x64xf16>, %o: memref<128x64xf32>) {
  %ring = frag.ring 1 : !ring
  %scores = frag.ring 1 : !frag.ring<memref<128x128xf32, #frag.tensor>>
  %weights = frag.ring 1 : !frag.ring<memref<128x128xf16, #frag.tensor<operand>>>
  %sums = frag.ring 1 : !frag.ring<memref<128x64xf32, #frag.tensor>>
  frag.roles packed "load" warps [1, 1] {
    %free = frag.acquire %ring : !ring
    %sq = frag.part %free[0] : !slot
    %sk = frag.part %free[1] : !slot
    %sv = frag.part %free[2] : !slot
    frag.copy tma %q[0, 0] to %sq[] : memref<128x64xf16> to !q
    frag.copy tma %k[0, 0] to %sk[] : memref<128x64xf16> to !q
    frag.copy tma %v[0, 0] to %sv[] : memref<128x64xf16> to !q
    frag.publish %free : !slot
  }, "multiply" warps [1, 1] {
    %no = arith.constant false
    %slot = frag.await %ring : !ring
    %sq = frag.part %slot[0] : !slot
    %sk = frag.part %slot[1] : !slot
    %sv = frag.part %slot[2] : !slot
    %free = frag.acquire %scores : !frag.ring<memref<128x128xf32, #frag.tensor>>
    %s = frag.part %free[0] : !scored
    frag.tcgen05_mma %sq, %sk transposed into %s if %no : !q, !q into !scores
    frag.publish %free : !scored
    %weighed = frag.await %weights : !frag.ring<memref<128x128xf16, #frag.tensor<operand>>>
    %w = frag.part %weighed[0] : !weighed
    %held = frag.acquire %sums : !frag.ring<memref<128x64xf32, #frag.tensor>>
    %d = frag.part %held[0] : !summed
    frag.tcgen05_mma %w, %sv into %d if %no : !weights, !q into !sums
    frag.release %weighed : !weighed
    frag.release %slot : !slot
    frag.publish %held : !summed
  }, "softmax" warpgroups [1, 1] {
    %scored = frag.await %scores : !frag.ring<memref<128x128xf32, #frag.tensor>>
    %s = frag.part %scored[0] : !scored
    %t = frag.tcgen05_load %s : !scores -> !tile
    frag.release %scored : !scored
    %most = frag.reduce max dim 1 %t : !tile -> !frag.tile<128xf32>
    %top = frag.broadcast %most along 1 : !frag.tile<128xf32> -> !tile
    %e = frag.map %t, %top : !tile, !tile -> !tile {
    ^bb0(%x: f32, %m: f32):
      %scale = arith.constant 0.18033688 : f32  // log2(e) / 8
      %less = arith.subf %x, %m : f32
      %y = arith.mulf %less, %scale : f32
      %z = math.exp2 %y : f32
      frag.yield %z : f32
    }
    %total = frag.reduce add dim 1 %e : !tile -> !frag.tile<128xf32>
    %half = frag.cast %e : !tile -> !frag.tile<128x128xf16>
    %free = frag.acquire %weights : !frag.ring<memref<128x128xf16, #frag.tensor<operand>>>
    %w = frag.part %free[0] : !weighed
    frag.tcgen05_store %half to %w : !frag.tile<128x128xf16>, !weights
    frag.publish %free : !weighed
    %full = frag.await %sums : !frag.ring<memref<128x64xf32, #frag.tensor>>
    %d = frag.part %full[0] : !summed
    %u = frag.tcgen05_load %d : !sums -> !out
    frag.release %full : !summed
    %by = frag.broadcast %total along 1 : !frag.tile<128xf32> -> !out
    %r = frag.map %u, %by : !out, !out -> !out {
    ^bb0(%x: f32, %y: f32):
      %z = arith.divf %x, %y : f32
      frag.yield %z : f32
    }
    frag.store %r, %o[0, 0] : !out, memref<128x64xf32>
  }
  func.return
}
