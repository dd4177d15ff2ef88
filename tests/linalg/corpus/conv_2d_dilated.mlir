// A spread kernel
// arrays: x 1x12x12x16, w 3x3x16x8
// result: np.einsum('nhwcyx,yxcf->nhwf', np.lib.stride_tricks.sliding_window_view(x, (5, 5), (1, 2))[..., ::2, ::2], w)
func.func @f(%x: tensor<1x12x12x16xf16>, %w: tensor<3x3x16x8xf16>) -> tensor<1x8x8x8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x8x8x8xf32>
  %s = linalg.fill ins(%zero : f32) outs(%e : tensor<1x8x8x8xf32>) -> tensor<1x8x8x8xf32>
  %r = linalg.conv_2d_nhwc_hwcf {dilations = dense<2> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>} ins(%x, %w : tensor<1x12x12x16xf16>, tensor<3x3x16x8xf16>) outs(%s : tensor<1x8x8x8xf32>) -> tensor<1x8x8x8xf32>
  return %r : tensor<1x8x8x8xf32>
}
