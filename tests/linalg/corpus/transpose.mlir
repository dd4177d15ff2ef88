// linalg.transpose of four dimensions
// arrays: a 2x5x3x8
// result: a.transpose(0, 2, 1, 3)
func.func @f(%a: tensor<2x5x3x8xf32>) -> tensor<2x3x5x8xf32> {
  %e = tensor.empty() : tensor<2x3x5x8xf32>
  %r = linalg.transpose ins(%a : tensor<2x5x3x8xf32>) outs(%e : tensor<2x3x5x8xf32>) permutation = [0, 2, 1, 3]
  return %r : tensor<2x3x5x8xf32>
}
