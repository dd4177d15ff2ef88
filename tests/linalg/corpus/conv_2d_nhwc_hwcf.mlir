// A convolution, channels last
// arrays: x 2x10x11x16, w 3x3x16x8
// result: np.einsum('nhwcyx,yxcf->nhwf', np.lib.stride_tricks.sliding_window_view(x, (3, 3), (1, 2)), w)
func.func @f(%x: tensor<2x10x11x16xf16>, %w: tensor<3x3x16x8xf16>) -> tensor<2x8x9x8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x8x9x8xf32>
  %s = linalg.fill ins(%zero : f32) outs(%e : tensor<2x8x9x8xf32>) -> tensor<2x8x9x8xf32>
  %r = linalg.conv_2d_nhwc_hwcf {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>} ins(%x, %w : tensor<2x10x11x16xf16>, tensor<3x3x16x8xf16>) outs(%s : tensor<2x8x9x8xf32>) -> tensor<2x8x9x8xf32>
  return %r : tensor<2x8x9x8xf32>
}
