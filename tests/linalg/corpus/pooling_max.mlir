// Maxima of squares
// arrays: x 2x10x12x8
// result: np.lib.stride_tricks.sliding_window_view(x, (2, 2), (1, 2))[:, ::2, ::2].max((-1, -2))
func.func @f(%x: tensor<2x10x12x8xf32>) -> tensor<2x5x6x8xf32> {
  %init = arith.constant 0xFF800000 : f32
  %win = tensor.empty() : tensor<2x2xf32>
  %e = tensor.empty() : tensor<2x5x6x8xf32>
  %s = linalg.fill ins(%init : f32) outs(%e : tensor<2x5x6x8xf32>) -> tensor<2x5x6x8xf32>
  %r = linalg.pooling_nhwc_max {dilations = dense<1> : tensor<2xi64>, strides = dense<2> : tensor<2xi64>} ins(%x, %win : tensor<2x10x12x8xf32>, tensor<2x2xf32>) outs(%s : tensor<2x5x6x8xf32>) -> tensor<2x5x6x8xf32>
  return %r : tensor<2x5x6x8xf32>
}
