// An inner product
// arrays: a 300, b 300
// result: a @ b
func.func @f(%a: tensor<300xf32>, %b: tensor<300xf32>) -> tensor<f32> {
  %zero = arith.constant 0.0 : f32
  %c_e = tensor.empty() : tensor<f32>
  %c_0 = linalg.fill ins(%zero : f32) outs(%c_e : tensor<f32>) -> tensor<f32>
  %c = linalg.dot ins(%a, %b : tensor<300xf32>, tensor<300xf32>) outs(%c_0 : tensor<f32>) -> tensor<f32>
  return %c : tensor<f32>
}
