// A transposed convolution: elements set apart, weights turned round
// arrays: x 1x2x4x4, w 3x2x3x3
// result: np.einsum('nchwyx,fcyx->nfhw', np.lib.stride_tricks.sliding_window_view(np.pad(np.kron(x, [[1, 0], [0, 0]])[:, :, :7, :7], ((0, 0), (0, 0), (1, 1), (1, 1))), (3, 3), (2, 3)), w[:, :, ::-1, ::-1])
func.func @f(%x: tensor<1x2x4x4xf32>, %w: tensor<3x2x3x3xf32>) -> tensor<1x3x7x7xf32> {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x2x9x9xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<1x2x9x9xf32>) -> tensor<1x2x9x9xf32>
  %p = tensor.insert_slice %x into %f[0, 0, 1, 1] [1, 2, 4, 4] [1, 1, 2, 2] : tensor<1x2x4x4xf32> into tensor<1x2x9x9xf32>
  %ew = tensor.empty() : tensor<3x2x3x3xf32>
  %flip = linalg.generic {indexing_maps = [affine_map<(a,b,c,d)->(a,b,2-c,2-d)>, affine_map<(a,b,c,d)->(a,b,c,d)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%w : tensor<3x2x3x3xf32>) outs(%ew : tensor<3x2x3x3xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<3x2x3x3xf32>
  %eo = tensor.empty() : tensor<1x3x7x7xf32>
  %fo = linalg.fill ins(%z : f32) outs(%eo : tensor<1x3x7x7xf32>) -> tensor<1x3x7x7xf32>
  %r = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%p, %flip : tensor<1x2x9x9xf32>, tensor<3x2x3x3xf32>) outs(%fo : tensor<1x3x7x7xf32>) -> tensor<1x3x7x7xf32>
  return %r : tensor<1x3x7x7xf32>
}
