// RUN: -p frag-place{target=sm_90a}
// The sum of a loop's products begins with a tile.
func.func @f(%n: index, %old: f32) {
  %a = memref.alloc() : memref<64x16xf16, #frag.shared<swizzle = 32>>
  %b = memref.alloc() : memref<8x16xf16, #frag.shared<swizzle = 32>>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c = frag.fill %old : !frag.tile<64x8xf32>
  %s = frag.in_flight %c : !frag.tile<64x8xf32> -> !frag.in_flight<!frag.tile<64x8xf32>>
  %t = scf.for %i = %c0 to %n step %c1 iter_args(%u = %s) -> (!frag.in_flight<!frag.tile<64x8xf32>>) {
    %d = frag.wgmma async %a, %b transposed, %u : memref<64x16xf16, #frag.shared<swizzle = 32>>, memref<8x16xf16, #frag.shared<swizzle = 32>>, !frag.in_flight<!frag.tile<64x8xf32>>
    scf.yield %d : !frag.in_flight<!frag.tile<64x8xf32>>
  }
  %r = frag.await %t : !frag.in_flight<!frag.tile<64x8xf32>>
  func.return
}
