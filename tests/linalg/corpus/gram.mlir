// A product with itself, and its sums by rows
// arrays: a 33x40
// result: (a @ a.T).sum(1)
func.func @f(%a: tensor<33x40xf16>) -> tensor<33xf32> {
  %zero = arith.constant 0.0 : f32
  %e1 = tensor.empty() : tensor<33x33xf32>
  %s1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<33x33xf32>) -> tensor<33x33xf32>
  %g = linalg.matmul_transpose_b ins(%a, %a : tensor<33x40xf16>, tensor<33x40xf16>) outs(%s1 : tensor<33x33xf32>) -> tensor<33x33xf32>
  %e2 = tensor.empty() : tensor<33xf32>
  %s2 = linalg.fill ins(%zero : f32) outs(%e2 : tensor<33xf32>) -> tensor<33xf32>
  %r = linalg.reduce { arith.addf } ins(%g : tensor<33x33xf32>) outs(%s2 : tensor<33xf32>) dimensions = [1]
  return %r : tensor<33xf32>
}
