// RUN: -p frag-place
// A scalar from memory as the place of a tile, and as a number beside its elements.
func.func @f(%s: memref<?x4xi32>, %x: memref<?xf32>, %c: memref<?x32xf32>) {
  %c0 = arith.constant 0 : index
  %c3 = arith.constant 3 : index
  %n = memref.load %s[%c3, %c0] : memref<?x4xi32>
  %i = arith.index_cast %n : i32 to index
  %bias = memref.load %x[%c3] : memref<?xf32>
  %t = frag.load %c[%i, 0] masked other %bias : memref<?x32xf32> -> !frag.tile<16x32xf32>
  frag.store %t, %c[0, 0] masked : !frag.tile<16x32xf32>, memref<?x32xf32>
  func.return
}
