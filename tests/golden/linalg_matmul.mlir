// RUN: -p convert-linalg-to-frag
// linalg.matmul adds to C.
func.func @adds(%a: memref<?x?xf64>, %b: memref<?x?xf64>, %c: memref<?x?xf64>) {
  linalg.matmul ins(%a, %b : memref<?x?xf64>, memref<?x?xf64>) outs(%c : memref<?x?xf64>)
  func.return
}
// After a fill with zero there is nothing to add.
func.func @from_zero(%a: memref<64x32xf64>, %b: memref<32x48xf64>, %c: memref<64x48xf64>) {
  %zero = arith.constant 0.0 : f64
  linalg.fill ins(%zero : f64) outs(%c : memref<64x48xf64>)
  linalg.matmul ins(%a, %b : memref<64x32xf64>, memref<32x48xf64>) outs(%c : memref<64x48xf64>)
  func.return
}
// A fill with anything else is added.
func.func @from_number(%a: memref<?x?xf64>, %b: memref<?x?xf64>, %c: memref<?x?xf64>, %x: f64) {
  linalg.fill ins(%x : f64) outs(%c : memref<?x?xf64>)
  linalg.matmul ins(%a, %b : memref<?x?xf64>, memref<?x?xf64>) outs(%c : memref<?x?xf64>)
  func.return
}
// Minus zero is not zero: 0 + -0 is 0.
func.func @from_minus_zero(%a: memref<?x?xf64>, %b: memref<?x?xf64>, %c: memref<?x?xf64>) {
  %minus = arith.constant -0.0 : f64
  linalg.fill ins(%minus : f64) outs(%c : memref<?x?xf64>)
  linalg.matmul ins(%a, %b : memref<?x?xf64>, memref<?x?xf64>) outs(%c : memref<?x?xf64>)
  func.return
}
// Equal types: f16 is summed in f16.
func.func @halves(%a: memref<?x?xf16>, %b: memref<?x?xf16>, %c: memref<?x?xf16>) {
  linalg.matmul ins(%a, %b : memref<?x?xf16>, memref<?x?xf16>) outs(%c : memref<?x?xf16>)
  func.return
}
// Maps say what is transposed; attributes of the schedule stay.
func.func @maps(%a: memref<?x?xf64>, %b: memref<?x?xf64>, %c: memref<?x?xf64>) {
  %zero = arith.constant 0.0 : f64
  linalg.fill ins(%zero : f64) outs(%c : memref<?x?xf64>)
  linalg.matmul {indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>], tile = array<i64: 32, 32, 16>, warps = array<i64: 2, 2>, stages = 2 : i64} ins(%a, %b : memref<?x?xf64>, memref<?x?xf64>) outs(%c : memref<?x?xf64>)
  func.return
}
// The same matrix twice.
func.func @square(%a: memref<?x?xf64>, %c: memref<?x?xf64>) {
  %zero = arith.constant 0.0 : f64
  linalg.fill ins(%zero : f64) outs(%c : memref<?x?xf64>)
  linalg.matmul ins(%a, %a : memref<?x?xf64>, memref<?x?xf64>) outs(%c : memref<?x?xf64>)
  func.return
}
// A function without linalg stays as it is.
func.func @other(%a: memref<?x?xf64>, %b: memref<?x?xf64>, %c: memref<?x?xf64>) {
  frag.matmul %a, %b into %c : memref<?x?xf64>, memref<?x?xf64> into memref<?x?xf64>
  func.return
}
