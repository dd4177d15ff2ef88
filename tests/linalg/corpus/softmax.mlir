// linalg.softmax of a row
// arrays: a 33x300
// result: np.exp(a - a.max(-1, keepdims=True)) / np.exp(a - a.max(-1, keepdims=True)).sum(-1, keepdims=True)
func.func @f(%a: tensor<33x300xf32>) -> tensor<33x300xf32> {
  %e = tensor.empty() : tensor<33x300xf32>
  %r = linalg.softmax dimension(1) ins(%a : tensor<33x300xf32>) outs(%e : tensor<33x300xf32>) -> tensor<33x300xf32>
  return %r : tensor<33x300xf32>
}
