// RUN: -p frag-pipeline{target=sm_90a},frag-specialize{target=sm_90a}
// A warp fetches, two warpgroups multiply by turns.
func.func @wgmma(%a: memref<128x96xf16>, %b: memref<96x32xf16>, %c: memref<128x32xf32>) attributes {frag.warpgroups = array<i64: 1, 1>, frag.consumers = 2 : i64} {
  frag.for_tiles (%row, %col) of (128, 32) by (64, 32) persistent {
    %zero = arith.constant 0.0 : f32
    %start = frag.fill %zero : !frag.tile<64x32xf32>
    %c0 = arith.constant 0 : index
    %c96 = arith.constant 96 : index
    %c32 = arith.constant 32 : index
    %sum = scf.for %k = %c0 to %c96 step %c32 iter_args(%acc = %start) -> (!frag.tile<64x32xf32>) {
      %ta = frag.load %a[%row, %k] : memref<128x96xf16> -> !frag.tile<64x32xf16>
      %tb = frag.load %b[%k, %col] : memref<96x32xf16> -> !frag.tile<32x32xf16>
      %d = frag.mma %ta, %tb, %acc : !frag.tile<64x32xf16>, !frag.tile<32x32xf16>, !frag.tile<64x32xf32> -> !frag.tile<64x32xf32>
      scf.yield %d : !frag.tile<64x32xf32>
    } {frag.stages = 3 : i64, frag.tma}
    frag.store %sum, %c[%row, %col] : !frag.tile<64x32xf32>, memref<128x32xf32>
  }
  func.return
}
