// A convolution in bf16 onto a bias, as torch-mlir prints it
// arrays: x 1x8x10x10, w 16x8x3x3, b 16
// result: sum(np.einsum("ncij,fc->nfij", x[:, :, i : i + 8, j : j + 8], w[:, :, i, j]) for i in range(3) for j in range(3)) + b[None, :, None, None]
func.func @f(%x: tensor<1x8x10x10xbf16>, %w: tensor<16x8x3x3xbf16>, %b: tensor<16xbf16>) -> tensor<1x16x8x8xbf16> {
  %0 = tensor.empty() : tensor<1x16x8x8xbf16>
  %broadcasted = linalg.broadcast ins(%b : tensor<16xbf16>) outs(%0 : tensor<1x16x8x8xbf16>) dimensions = [0, 2, 3]
  %1 = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%x, %w : tensor<1x8x10x10xbf16>, tensor<16x8x3x3xbf16>) outs(%broadcasted : tensor<1x16x8x8xbf16>) -> tensor<1x16x8x8xbf16>
  return %1 : tensor<1x16x8x8xbf16>
}
