// A vector by a matrix
// arrays: a 40, b 40x33
// result: a @ b
func.func @f(%a: tensor<40xf16>, %b: tensor<40x33xf16>) -> tensor<33xf32> {
  %zero = arith.constant 0.0 : f32
  %c_e = tensor.empty() : tensor<33xf32>
  %c_0 = linalg.fill ins(%zero : f32) outs(%c_e : tensor<33xf32>) -> tensor<33xf32>
  %c = linalg.vecmat ins(%a, %b : tensor<40xf16>, tensor<40x33xf16>) outs(%c_0 : tensor<33xf32>) -> tensor<33xf32>
  return %c : tensor<33xf32>
}
