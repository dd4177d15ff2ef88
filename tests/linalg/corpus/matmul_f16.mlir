// A product of halves summed in f32
// arrays: a 33x40, b 40x24
// result: a @ b
func.func @f(%a: tensor<33x40xf16>, %b: tensor<40x24xf16>) -> tensor<33x24xf32> {
  %zero = arith.constant 0.0 : f32
  %c_e = tensor.empty() : tensor<33x24xf32>
  %c_0 = linalg.fill ins(%zero : f32) outs(%c_e : tensor<33x24xf32>) -> tensor<33x24xf32>
  %c = linalg.matmul ins(%a, %b : tensor<33x40xf16>, tensor<40x24xf16>) outs(%c_0 : tensor<33x24xf32>) -> tensor<33x24xf32>
  return %c : tensor<33x24xf32>
}
