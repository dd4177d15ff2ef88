// A convolution as torch has it
// arrays: x 2x16x10x11, w 8x16x3x3
// result: np.einsum('nchwyx,fcyx->nfhw', np.lib.stride_tricks.sliding_window_view(x, (3, 3), (2, 3)), w)
func.func @f(%x: tensor<2x16x10x11xf16>, %w: tensor<8x16x3x3xf16>) -> tensor<2x8x8x9xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x8x8x9xf32>
  %s = linalg.fill ins(%zero : f32) outs(%e : tensor<2x8x8x9xf32>) -> tensor<2x8x8x9xf32>
  %r = linalg.conv_2d_nchw_fchw {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>} ins(%x, %w : tensor<2x16x10x11xf16>, tensor<8x16x3x3xf16>) outs(%s : tensor<2x8x8x9xf32>) -> tensor<2x8x8x9xf32>
  return %r : tensor<2x8x8x9xf32>
}
