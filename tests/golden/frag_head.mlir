// RUN: 
// Memory up to a row: of any rank, type and strides.
func.func @f(%c: memref<?x64xf32>, %s: memref<128xi8>, %t: memref<4x?xf16, strided<[?, 1]>>, %end: index) {
  %0 = frag.head %c to %end : memref<?x64xf32>
  %1 = frag.head %s to %end : memref<128xi8>
  %2 = frag.head %t to %end {"name"} : memref<4x?xf16, strided<[?, 1]>>
  func.return
}
