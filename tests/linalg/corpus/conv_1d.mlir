// A row
// arrays: x 70, w 5
// result: np.lib.stride_tricks.sliding_window_view(x, 5) @ w
func.func @f(%x: tensor<70xf32>, %w: tensor<5xf32>) -> tensor<66xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<66xf32>
  %s = linalg.fill ins(%zero : f32) outs(%e : tensor<66xf32>) -> tensor<66xf32>
  %r = linalg.conv_1d ins(%x, %w : tensor<70xf32>, tensor<5xf32>) outs(%s : tensor<66xf32>) -> tensor<66xf32>
  return %r : tensor<66xf32>
}
