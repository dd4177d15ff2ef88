// A matrix in tiles of 8 x 4, the last padded
// arrays: a 13x10
// result: np.pad(a, ((0, 3), (0, 2))).reshape(2, 8, 3, 4).transpose(2, 0, 1, 3)
func.func @f(%a: tensor<13x10xf32>) -> tensor<3x2x8x4xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<3x2x8x4xf32>
  %r = tensor.pack %a padding_value(%zero : f32) outer_dims_perm = [1, 0] inner_dims_pos = [0, 1] inner_tiles = [8, 4] into %e : tensor<13x10xf32> -> tensor<3x2x8x4xf32>
  return %r : tensor<3x2x8x4xf32>
}
