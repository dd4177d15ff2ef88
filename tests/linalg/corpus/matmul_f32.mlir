// A product of f32, which no tensor core has
// arrays: a 19x23, b 23x31
// result: a @ b
func.func @f(%a: tensor<19x23xf32>, %b: tensor<23x31xf32>) -> tensor<19x31xf32> {
  %zero = arith.constant 0.0 : f32
  %c_e = tensor.empty() : tensor<19x31xf32>
  %c_0 = linalg.fill ins(%zero : f32) outs(%c_e : tensor<19x31xf32>) -> tensor<19x31xf32>
  %c = linalg.matmul ins(%a, %b : tensor<19x23xf32>, tensor<23x31xf32>) outs(%c_0 : tensor<19x31xf32>) -> tensor<19x31xf32>
  return %c : tensor<19x31xf32>
}
