// C += A B in f64, as a named operation of linalg: equal types need nothing else.
//
//   fragir run examples/linalg_matmul.mlir --size m=70,n=50,k=77
func.func @matmul(%a: memref<?x?xf64>, %b: memref<?x?xf64>, %c: memref<?x?xf64>) {
  linalg.matmul ins(%a, %b : memref<?x?xf64>, memref<?x?xf64>) outs(%c : memref<?x?xf64>)
  func.return
}
