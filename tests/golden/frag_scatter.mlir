// RUN: -p frag-place
// Elements and rows, with all words.
func.func @f(%x: memref<16x32xf32>, %r: memref<16x32xi32>, %m: memref<4x?x?xf32>, %i: index) {
  %t = frag.load %x[0, 0] : memref<16x32xf32> -> !frag.tile<16x32xf32>
  %j = frag.load %r[0, 0] : memref<16x32xi32> -> !frag.tile<16x32xi32>
  %k = frag.map %j : !frag.tile<16x32xi32> -> !frag.tile<16x32xi1> {
  ^bb0(%v: i32):
    %zero = arith.constant 0 : i32
    %q = arith.cmpi sgt, %v, %zero : i32
    frag.yield %q : i1
  }
  frag.scatter %t, %m[3, %j, %j] masked where %k
    : !frag.tile<16x32xf32>, memref<4x?x?xf32>, !frag.tile<16x32xi32>, !frag.tile<16x32xi32>
    where !frag.tile<16x32xi1>
  func.return
}
func.func @rows(%x: memref<16x32xf32>, %r: memref<16xi32>, %m: memref<?x?xf32>) {
  %t = frag.load %x[0, 0] : memref<16x32xf32> -> !frag.tile<16x32xf32>
  %j = frag.load %r[0] : memref<16xi32> -> !frag.tile<16xi32>
  frag.scatter %t, %m[%j, 0] masked
    : !frag.tile<16x32xf32>, memref<?x?xf32>, !frag.tile<16xi32>
  func.return
}
