// RUN: -p frag-place,convert-frag-to-ptx
// -----
// A scalar from shared memory.
func.func @f(%i: index) {
  %m = memref.alloc() : memref<16x32xf16, #frag.shared>
  %0 = memref.load %m[%i, %i] : memref<16x32xf16, #frag.shared>
  func.return
}
// -----
// Half a byte.
func.func @f(%m: memref<32xsi4>, %i: index) {
  %0 = memref.load %m[%i] : memref<32xsi4>
  func.return
}
// -----
// Behind the last element.
func.func @f(%m: memref<32xi32>) {
  %i = arith.constant 32 : index
  %0 = memref.load %m[%i] : memref<32xi32>
  func.return
}
// -----
// Ahead of the first one.
func.func @f(%m: memref<?xi32>) {
  %i = arith.constant -1 : index
  %0 = memref.load %m[%i] : memref<?xi32>
  func.return
}
