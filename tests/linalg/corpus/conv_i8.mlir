// Bytes
// arrays: x 1x8x8x32, w 3x3x32x8
// result: np.einsum('nhwcyx,yxcf->nhwf', np.lib.stride_tricks.sliding_window_view(x, (3, 3), (1, 2)), w)
func.func @f(%x: tensor<1x8x8x32xi8>, %w: tensor<3x3x32x8xi8>) -> tensor<1x6x6x8xi32> {
  %zero = arith.constant 0 : i32
  %e = tensor.empty() : tensor<1x6x6x8xi32>
  %s = linalg.fill ins(%zero : i32) outs(%e : tensor<1x6x6x8xi32>) -> tensor<1x6x6x8xi32>
  %r = linalg.conv_2d_nhwc_hwcf {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>} ins(%x, %w : tensor<1x8x8x32xi8>, tensor<3x3x32x8xi8>) outs(%s : tensor<1x6x6x8xi32>) -> tensor<1x6x6x8xi32>
  return %r : tensor<1x6x6x8xi32>
}
