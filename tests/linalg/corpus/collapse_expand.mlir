// Other shapes around an operation
// arrays: a 6x4x8
// result: np.exp(a.reshape(24, 8)).reshape(3, 8, 8)
func.func @f(%a: tensor<6x4x8xf32>) -> tensor<3x8x8xf32> {
  %c = tensor.collapse_shape %a [[0, 1], [2]] : tensor<6x4x8xf32> into tensor<24x8xf32>
  %e = tensor.empty() : tensor<24x8xf32>
  %x = linalg.exp ins(%c : tensor<24x8xf32>) outs(%e : tensor<24x8xf32>) -> tensor<24x8xf32>
  %r = tensor.expand_shape %x [[0, 1], [2]] output_shape [3, 8, 8] : tensor<24x8xf32> into tensor<3x8x8xf32>
  return %r : tensor<3x8x8xf32>
}
