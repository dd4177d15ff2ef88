// RUN: -p frag-place
// -----
// A tile that is smaller than its indices.
func.func @f(%m: memref<16xi8>, %t: memref<16xi32>, %x: memref<8xi8>) {
  %i = frag.load %t[0] : memref<16xi32> -> !frag.tile<16xi32>
  %k = frag.load %x[0] : memref<8xi8> -> !frag.tile<8xi8>
  frag.scatter %k, %m[%i] : !frag.tile<8xi8>, memref<16xi8>, !frag.tile<16xi32>
  func.return
}
// -----
// Behind the last matrix.
func.func @f(%m: memref<4x16xf32>, %x: memref<16xf32>, %t: memref<16xi32>) {
  %i = frag.load %t[0] : memref<16xi32> -> !frag.tile<16xi32>
  %k = frag.load %x[0] : memref<16xf32> -> !frag.tile<16xf32>
  frag.scatter %k, %m[4, %i] : !frag.tile<16xf32>, memref<4x16xf32>, !frag.tile<16xi32>
  func.return
}
