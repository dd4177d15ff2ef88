// A padded maximum, channels first
// arrays: arg0 1x3x9x9
// result: np.lib.stride_tricks.sliding_window_view(np.pad(arg0, ((0, 0), (0, 0), (1, 1), (1, 1)), constant_values=-np.inf), (3, 3), (2, 3))[:, :, ::2, ::2].max((-1, -2))
module {
  func.func @forward(%arg0: tensor<1x3x9x9xf32>) -> tensor<1x3x5x5xf32> {
    %cst = arith.constant 0xFF800000 : f32
    %padded = tensor.pad %arg0 low[0, 0, 1, 1] high[0, 0, 1, 1] {
    ^bb0(%a: index, %b: index, %c: index, %d: index):
      tensor.yield %cst : f32
    } : tensor<1x3x9x9xf32> to tensor<1x3x11x11xf32>
    %0 = tensor.empty() : tensor<1x3x5x5xf32>
    %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<1x3x5x5xf32>) -> tensor<1x3x5x5xf32>
    %2 = tensor.empty() : tensor<3x3xf32>
    %3 = linalg.pooling_nchw_max {dilations = dense<1> : vector<2xi64>, strides = dense<2> : vector<2xi64>} ins(%padded, %2 : tensor<1x3x11x11xf32>, tensor<3x3xf32>) outs(%1 : tensor<1x3x5x5xf32>) -> tensor<1x3x5x5xf32>
    return %3 : tensor<1x3x5x5xf32>
  }
}
