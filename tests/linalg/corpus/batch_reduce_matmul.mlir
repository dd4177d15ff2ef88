// Products of several matrices added up
// arrays: a 3x17x32, b 3x32x24
// result: (a @ b).sum(0)
func.func @f(%a: tensor<3x17x32xf32>, %b: tensor<3x32x24xf32>) -> tensor<17x24xf32> {
  %zero = arith.constant 0.0 : f32
  %c_e = tensor.empty() : tensor<17x24xf32>
  %c_0 = linalg.fill ins(%zero : f32) outs(%c_e : tensor<17x24xf32>) -> tensor<17x24xf32>
  %c = linalg.batch_reduce_matmul ins(%a, %b : tensor<3x17x32xf32>, tensor<3x32x24xf32>) outs(%c_0 : tensor<17x24xf32>) -> tensor<17x24xf32>
  return %c : tensor<17x24xf32>
}
