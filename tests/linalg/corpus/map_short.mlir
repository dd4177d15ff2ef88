// linalg.map with an operation's name
// arrays: a 33x40, b 33x40
// result: np.maximum(a, b)
func.func @f(%a: tensor<33x40xi32>, %b: tensor<33x40xi32>) -> tensor<33x40xi32> {
  %e = tensor.empty() : tensor<33x40xi32>
  %r = linalg.map { arith.maxsi } ins(%a, %b : tensor<33x40xi32>, tensor<33x40xi32>) outs(%e : tensor<33x40xi32>)
  return %r : tensor<33x40xi32>
}
