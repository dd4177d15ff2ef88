// RUN: -p frag-place
// -----
// No tile among the indices.
func.func @f(%m: memref<16x32xf32>) {
  %0 = frag.gather %m[0, 0] : memref<16x32xf32>,  -> !frag.tile<16x32xf32>
  func.return
}
// -----
// No tile among the indices, one of which is known at run time.
func.func @f(%m: memref<16x32xf32>, %i: index) {
  %0 = frag.gather %m[%i, 0] : memref<16x32xf32>, index -> !frag.tile<16x32xf32>
  func.return
}
// -----
// Too few indices.
func.func @f(%m: memref<16x32xf32>, %t: memref<16xi32>) {
  %i = frag.load %t[0] : memref<16xi32> -> !frag.tile<16xi32>
  %0 = frag.gather %m[%i] : memref<16x32xf32>, !frag.tile<16xi32> -> !frag.tile<16x32xf32>
  func.return
}
// -----
// Rows in the last dimension.
func.func @f(%m: memref<16x32xf32>, %t: memref<16xi32>) {
  %i = frag.load %t[0] : memref<16xi32> -> !frag.tile<16xi32>
  %0 = frag.gather %m[0, %i] : memref<16x32xf32>, !frag.tile<16xi32> -> !frag.tile<16x32xf32>
  func.return
}
// -----
// Indices that are floats.
func.func @f(%m: memref<16xf32>, %t: memref<16xf32>) {
  %i = frag.load %t[0] : memref<16xf32> -> !frag.tile<16xf32>
  %0 = frag.gather %m[%i] : memref<16xf32>, !frag.tile<16xf32> -> !frag.tile<16xf32>
  func.return
}
// -----
// Memory of another element type.
func.func @f(%m: memref<16xf32>, %t: memref<16xi32>) {
  %i = frag.load %t[0] : memref<16xi32> -> !frag.tile<16xi32>
  %0 = frag.gather %m[%i] : memref<16xf32>, !frag.tile<16xi32> -> !frag.tile<16xf16>
  func.return
}
// -----
// Elements that share a byte.
func.func @f(%m: memref<16xsi4>, %t: memref<16xi32>) {
  %i = frag.load %t[0] : memref<16xi32> -> !frag.tile<16xi32>
  %0 = frag.gather %m[%i] : memref<16xsi4>, !frag.tile<16xi32> -> !frag.tile<16xsi4>
  func.return
}
// -----
// A mask that is no tile of truth values.
func.func @f(%m: memref<16xf32>, %t: memref<16xi32>) {
  %i = frag.load %t[0] : memref<16xi32> -> !frag.tile<16xi32>
  %0 = frag.gather %m[%i] where %i : memref<16xf32>, !frag.tile<16xi32> where !frag.tile<16xi32> -> !frag.tile<16xf32>
  func.return
}
// -----
// Another value where everything is read.
func.func @f(%m: memref<16xf32>, %t: memref<16xi32>, %x: f32) {
  %i = frag.load %t[0] : memref<16xi32> -> !frag.tile<16xi32>
  %0 = frag.gather %m[%i] other %x : memref<16xf32>, !frag.tile<16xi32> -> !frag.tile<16xf32>
  func.return
}
// -----
// Columns that leave the memory.
func.func @f(%m: memref<?x32xf32>, %t: memref<16xi32>) {
  %i = frag.load %t[0] : memref<16xi32> -> !frag.tile<16xi32>
  %0 = frag.gather %m[%i, 8] : memref<?x32xf32>, !frag.tile<16xi32> -> !frag.tile<16x32xf32>
  func.return
}
