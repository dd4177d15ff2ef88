// C = A A^T, by an operation and a pass of the package tilekit.
func.func @gram(%a: memref<?x?xf16>, %c: memref<?x?xf32>) {
  kit.gram %a into %c : memref<?x?xf16> into memref<?x?xf32>
  func.return
}
