// RUN: -p frag-place
// Elements by a tile of indices for each dimension, rows by one of one dimension; and all words.
func.func @f(%w: memref<?x64xf16>, %ids: memref<32xi32>, %m: memref<4x?x?xf32>, %r: memref<16x32xi32>,
             %y: memref<32x64xf16>, %z: memref<16x32xf32>, %x: f32, %c: f16) {
  %c3 = arith.constant 3 : index
  %i = frag.load %ids[0] : memref<32xi32> -> !frag.tile<32xi32>
  %0 = frag.gather %w[%i, 0] masked other %c
    : memref<?x64xf16>, !frag.tile<32xi32> -> !frag.tile<32x64xf16>
  frag.store %0, %y[0, 0] : !frag.tile<32x64xf16>, memref<32x64xf16>
  %j = frag.load %r[0, 0] : memref<16x32xi32> -> !frag.tile<16x32xi32>
  %k = frag.map %j : !frag.tile<16x32xi32> -> !frag.tile<16x32xi1> {
  ^bb0(%v: i32):
    %zero = arith.constant 0 : i32
    %q = arith.cmpi sgt, %v, %zero : i32
    frag.yield %q : i1
  }
  %1 = frag.gather %m[%c3, %j, %j] masked where %k other %x
    : memref<4x?x?xf32>, index, !frag.tile<16x32xi32>, !frag.tile<16x32xi32>
    where !frag.tile<16x32xi1> -> !frag.tile<16x32xf32>
  frag.store %1, %z[0, 0] : !frag.tile<16x32xf32>, memref<16x32xf32>
  func.return
}
