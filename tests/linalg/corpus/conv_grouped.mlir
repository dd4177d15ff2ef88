// A convolution in groups of channels
// arrays: x 1x2x4x8x8, w 2x3x4x3x3
// result: np.einsum('ngchwyx,gfcyx->ngfhw', np.lib.stride_tricks.sliding_window_view(x, (3, 3), (3, 4)), w)
module {
  func.func @conv(%x: tensor<1x2x4x8x8xf32>, %w: tensor<2x3x4x3x3xf32>) -> tensor<1x2x3x6x6xf32> {
    %z = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<1x2x3x6x6xf32>
    %f = linalg.fill ins(%z : f32) outs(%e : tensor<1x2x3x6x6xf32>) -> tensor<1x2x3x6x6xf32>
    %r = linalg.conv_2d_ngchw_gfchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%x, %w : tensor<1x2x4x8x8xf32>, tensor<2x3x4x3x3xf32>) outs(%f : tensor<1x2x3x6x6xf32>) -> tensor<1x2x3x6x6xf32>
    return %r : tensor<1x2x3x6x6xf32>
  }
}
