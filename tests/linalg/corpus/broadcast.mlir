// linalg.broadcast of a row
// arrays: a 40
// result: np.broadcast_to(a, (33, 40))
func.func @f(%a: tensor<40xf32>) -> tensor<33x40xf32> {
  %e = tensor.empty() : tensor<33x40xf32>
  %r = linalg.broadcast ins(%a : tensor<40xf32>) outs(%e : tensor<33x40xf32>) dimensions = [0]
  return %r : tensor<33x40xf32>
}
