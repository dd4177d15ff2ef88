// One channel
// arrays: x 12x13, w 3x4
// result: np.einsum('hwyx,yx->hw', np.lib.stride_tricks.sliding_window_view(x, (3, 4)), w)
func.func @f(%x: tensor<12x13xf32>, %w: tensor<3x4xf32>) -> tensor<10x10xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<10x10xf32>
  %s = linalg.fill ins(%zero : f32) outs(%e : tensor<10x10xf32>) -> tensor<10x10xf32>
  %r = linalg.conv_2d ins(%x, %w : tensor<12x13xf32>, tensor<3x4xf32>) outs(%s : tensor<10x10xf32>) -> tensor<10x10xf32>
  return %r : tensor<10x10xf32>
}
