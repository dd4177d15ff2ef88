// A matrix by a vector
// arrays: a 33x40, b 40
// result: a @ b
func.func @f(%a: tensor<33x40xf32>, %b: tensor<40xf32>) -> tensor<33xf32> {
  %zero = arith.constant 0.0 : f32
  %c_e = tensor.empty() : tensor<33xf32>
  %c_0 = linalg.fill ins(%zero : f32) outs(%c_e : tensor<33xf32>) -> tensor<33xf32>
  %c = linalg.matvec ins(%a, %b : tensor<33x40xf32>, tensor<40xf32>) outs(%c_0 : tensor<33xf32>) -> tensor<33xf32>
  return %c : tensor<33xf32>
}
