// Each channel by itself
// arrays: x 2x9x10x16, w 3x3x16
// result: np.einsum('nhwcyx,yxc->nhwc', np.lib.stride_tricks.sliding_window_view(x, (3, 3), (1, 2)), w)
func.func @f(%x: tensor<2x9x10x16xf32>, %w: tensor<3x3x16xf32>) -> tensor<2x7x8x16xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x7x8x16xf32>
  %s = linalg.fill ins(%zero : f32) outs(%e : tensor<2x7x8x16xf32>) -> tensor<2x7x8x16xf32>
  %r = linalg.depthwise_conv_2d_nhwc_hwc {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>} ins(%x, %w : tensor<2x9x10x16xf32>, tensor<3x3x16xf32>) outs(%s : tensor<2x7x8x16xf32>) -> tensor<2x7x8x16xf32>
  return %r : tensor<2x7x8x16xf32>
}
