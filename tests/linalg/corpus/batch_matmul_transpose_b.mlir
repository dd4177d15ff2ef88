// Scores of attention
// arrays: a 3x17x32, b 3x24x32
// result: a @ b.transpose(0, 2, 1)
func.func @f(%a: tensor<3x17x32xf16>, %b: tensor<3x24x32xf16>) -> tensor<3x17x24xf32> {
  %zero = arith.constant 0.0 : f32
  %c_e = tensor.empty() : tensor<3x17x24xf32>
  %c_0 = linalg.fill ins(%zero : f32) outs(%c_e : tensor<3x17x24xf32>) -> tensor<3x17x24xf32>
  %c = linalg.batch_matmul_transpose_b ins(%a, %b : tensor<3x17x32xf16>, tensor<3x24x32xf16>) outs(%c_0 : tensor<3x17x24xf32>) -> tensor<3x17x24xf32>
  return %c : tensor<3x17x24xf32>
}
