// Sums of squares, channels first
// arrays: x 2x8x10x12
// result: np.lib.stride_tricks.sliding_window_view(x, (2, 2), (2, 3))[:, :, ::2, ::2].sum((-1, -2))
func.func @f(%x: tensor<2x8x10x12xf32>) -> tensor<2x8x5x6xf32> {
  %init = arith.constant 0.0 : f32
  %win = tensor.empty() : tensor<2x2xf32>
  %e = tensor.empty() : tensor<2x8x5x6xf32>
  %s = linalg.fill ins(%init : f32) outs(%e : tensor<2x8x5x6xf32>) -> tensor<2x8x5x6xf32>
  %r = linalg.pooling_nchw_sum {dilations = dense<1> : tensor<2xi64>, strides = dense<2> : tensor<2xi64>} ins(%x, %win : tensor<2x8x10x12xf32>, tensor<2x2xf32>) outs(%s : tensor<2x8x5x6xf32>) -> tensor<2x8x5x6xf32>
  return %r : tensor<2x8x5x6xf32>
}
