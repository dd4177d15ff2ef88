// A convolution of any size, whose result is as large as affine.apply says
// arrays: x 2x9x10x4, w 3x3x4x8
// result: np.einsum('nhwcyx,yxcf->nhwf', np.lib.stride_tricks.sliding_window_view(x, (3, 3), (1, 2)), w)
#o = affine_map<()[s0] -> (s0 - 2)>
func.func @f(%x: tensor<?x?x?x4xf32>, %w: tensor<3x3x4x8xf32>) -> tensor<?x?x?x8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %z = arith.constant 0.0 : f32
  %n = tensor.dim %x, %c0 : tensor<?x?x?x4xf32>
  %h = tensor.dim %x, %c1 : tensor<?x?x?x4xf32>
  %v = tensor.dim %x, %c2 : tensor<?x?x?x4xf32>
  %oh = affine.apply #o()[%h]
  %ow = affine.apply #o()[%v]
  %e = tensor.empty(%n, %oh, %ow) : tensor<?x?x?x8xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<?x?x?x8xf32>) -> tensor<?x?x?x8xf32>
  %r = linalg.conv_2d_nhwc_hwcf {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>} ins(%x, %w : tensor<?x?x?x4xf32>, tensor<3x3x4x8xf32>) outs(%f : tensor<?x?x?x8xf32>) -> tensor<?x?x?x8xf32>
  return %r : tensor<?x?x?x8xf32>
}
