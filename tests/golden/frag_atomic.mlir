// RUN: -p frag-place
// Places that are a tile's, of elements and of rows; with all words, and what memory held.
func.func @f(%x: memref<32x64xf32>, %r: memref<32xi32>, %c: memref<?x?xf32>, %i: index) {
  %t = frag.load %x[0, 0] : memref<32x64xf32> -> !frag.tile<32x64xf32>
  %j = frag.load %r[0] : memref<32xi32> -> !frag.tile<32xi32>
  %k = frag.map %j : !frag.tile<32xi32> -> !frag.tile<32xi1> {
  ^bb0(%v: i32):
    %zero = arith.constant 0 : i32
    %q = arith.cmpi sgt, %v, %zero : i32
    frag.yield %q : i1
  }
  frag.atomic add %t, %c[0, 0] masked : !frag.tile<32x64xf32>, memref<?x?xf32>
  frag.atomic add %t, %c[%i, 8] masked : !frag.tile<32x64xf32>, memref<?x?xf32>, index
  frag.atomic add %t, %c[%j, 0] masked where %k : !frag.tile<32x64xf32>, memref<?x?xf32>, !frag.tile<32xi32> where !frag.tile<32xi1>
  func.return
}
func.func @g(%r: memref<32xi32>, %h: memref<50xi32>) {
  %j = frag.load %r[0] : memref<32xi32> -> !frag.tile<32xi32>
  %k = frag.map %j : !frag.tile<32xi32> -> !frag.tile<32xi1> {
  ^bb0(%v: i32):
    %zero = arith.constant 0 : i32
    %q = arith.cmpi sgt, %v, %zero : i32
    frag.yield %q : i1
  }
  %old = frag.atomic cas %j, %h[%j] expected %j masked where %k : !frag.tile<32xi32>, memref<50xi32>, !frag.tile<32xi32> where !frag.tile<32xi1> -> !frag.tile<32xi32>
  frag.atomic max %j, %h[0] : !frag.tile<32xi32>, memref<50xi32>
  func.return
}
