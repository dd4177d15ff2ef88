// RUN: -p frag-place
// -----
// An operation that there is not.
func.func @f(%x: memref<32xi32>, %m: memref<32xi32>) {
  %t = frag.load %x[0] : memref<32xi32> -> !frag.tile<32xi32>
  frag.atomic sub %t, %m[0] : !frag.tile<32xi32>, memref<32xi32>
  func.return
}
// -----
// The larger of two floats.
func.func @f(%x: memref<32xf32>, %m: memref<32xf32>) {
  %t = frag.load %x[0] : memref<32xf32> -> !frag.tile<32xf32>
  frag.atomic max %t, %m[0] : !frag.tile<32xf32>, memref<32xf32>
  func.return
}
// -----
// Bytes.
func.func @f(%x: memref<32xi8>, %m: memref<32xi8>) {
  %t = frag.load %x[0] : memref<32xi8> -> !frag.tile<32xi8>
  frag.atomic add %t, %m[0] : !frag.tile<32xi8>, memref<32xi8>
  func.return
}
// -----
// Nothing to compare with.
func.func @f(%x: memref<32xi32>, %m: memref<32xi32>) {
  %t = frag.load %x[0] : memref<32xi32> -> !frag.tile<32xi32>
  frag.atomic cas %t, %m[0] : !frag.tile<32xi32>, memref<32xi32>
  func.return
}
// -----
// Beyond the end.
func.func @f(%x: memref<32xi32>, %m: memref<32xi32>) {
  %t = frag.load %x[0] : memref<32xi32> -> !frag.tile<32xi32>
  frag.atomic add %t, %m[1] : !frag.tile<32xi32>, memref<32xi32>
  func.return
}
// -----
// A vector for a matrix.
func.func @f(%x: memref<4x32xi32>, %m: memref<32xi32>) {
  %t = frag.load %x[0, 0] : memref<4x32xi32> -> !frag.tile<4x32xi32>
  frag.atomic add %t, %m[0] : !frag.tile<4x32xi32>, memref<32xi32>
  func.return
}
// -----
// A result of another type.
func.func @f(%x: memref<32xi32>, %m: memref<32xi32>) {
  %t = frag.load %x[0] : memref<32xi32> -> !frag.tile<32xi32>
  %o = frag.atomic add %t, %m[0] : !frag.tile<32xi32>, memref<32xi32> -> !frag.tile<32xf32>
  func.return
}
