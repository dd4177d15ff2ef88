// A pad that a pooling reads
// arrays: x 1x9x9x8
// result: np.lib.stride_tricks.sliding_window_view(np.pad(x, ((0, 0), (0, 1), (0, 1), (0, 0)), constant_values=-np.inf), (2, 2), (1, 2))[:, ::2, ::2].max((-1, -2))
func.func @f(%x: tensor<1x9x9x8xf32>) -> tensor<1x5x5x8xf32> {
  %low = arith.constant 0xFF800000 : f32
  %p = tensor.pad %x low[0, 0, 0, 0] high[0, 1, 1, 0] {
  ^bb0(%n: index, %h: index, %w: index, %c: index):
    tensor.yield %low : f32
  } : tensor<1x9x9x8xf32> to tensor<1x10x10x8xf32>
  %win = tensor.empty() : tensor<2x2xf32>
  %e = tensor.empty() : tensor<1x5x5x8xf32>
  %s = linalg.fill ins(%low : f32) outs(%e : tensor<1x5x5x8xf32>) -> tensor<1x5x5x8xf32>
  %r = linalg.pooling_nhwc_max {dilations = dense<1> : tensor<2xi64>, strides = dense<2> : tensor<2xi64>} ins(%p, %win : tensor<1x10x10x8xf32>, tensor<2x2xf32>) outs(%s : tensor<1x5x5x8xf32>) -> tensor<1x5x5x8xf32>
  return %r : tensor<1x5x5x8xf32>
}
