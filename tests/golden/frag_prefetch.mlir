// RUN: -p frag-pipeline{target=sm_80},frag-prefetch
// All slots are filled ahead of the loop. A turn loads the second half of its slot, awaits the next one,
// loads its first half, and fills its own again, for three turns later.
func.func @mma(%a: memref<64x96xf16>, %b: memref<96x32xf16>, %c: memref<64x32xf32>) attributes {frag.warps = array<i64: 2, 1>} {
  %zero = arith.constant 0.0 : f32
  %start = frag.fill %zero : !frag.tile<64x32xf32>
  %c0 = arith.constant 0 : index
  %c96 = arith.constant 96 : index
  %c32 = arith.constant 32 : index
  %sum = scf.for %k = %c0 to %c96 step %c32 iter_args(%acc = %start) -> (!frag.tile<64x32xf32>) {
    %ta = frag.load %a[0, %k] : memref<64x96xf16> -> !frag.tile<64x32xf16>
    %tb = frag.load %b[%k, 0] : memref<96x32xf16> -> !frag.tile<32x32xf16>
    %d = frag.mma %ta, %tb, %acc : !frag.tile<64x32xf16>, !frag.tile<32x32xf16>, !frag.tile<64x32xf32> -> !frag.tile<64x32xf32>
    scf.yield %d : !frag.tile<64x32xf32>
  } {frag.stages = 3 : i64}
  frag.store %sum, %c[0, 0] : !frag.tile<64x32xf32>, memref<64x32xf32>
  func.return
}
