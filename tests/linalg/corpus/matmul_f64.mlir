// Doubles
// arrays: a 19x23, b 23x31
// result: a @ b
func.func @f(%a: tensor<19x23xf64>, %b: tensor<23x31xf64>) -> tensor<19x31xf64> {
  %zero = arith.constant 0.0 : f64
  %c_e = tensor.empty() : tensor<19x31xf64>
  %c_0 = linalg.fill ins(%zero : f64) outs(%c_e : tensor<19x31xf64>) -> tensor<19x31xf64>
  %c = linalg.matmul ins(%a, %b : tensor<19x23xf64>, tensor<23x31xf64>) outs(%c_0 : tensor<19x31xf64>) -> tensor<19x31xf64>
  return %c : tensor<19x31xf64>
}
