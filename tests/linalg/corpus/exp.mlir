// A named elementwise operation
// arrays: a 33x40
// result: np.exp(a)
func.func @f(%a: tensor<33x40xf32>) -> tensor<33x40xf32> {
  %e = tensor.empty() : tensor<33x40xf32>
  %r = linalg.exp ins(%a : tensor<33x40xf32>) outs(%e : tensor<33x40xf32>) -> tensor<33x40xf32>
  return %r : tensor<33x40xf32>
}
