// Tiles as a matrix
// arrays: a 2x3x8x4
// result: a.transpose(0, 2, 1, 3).reshape(16, 12)[:13, :10]
func.func @f(%a: tensor<2x3x8x4xf16>) -> tensor<13x10xf16> {
  %e = tensor.empty() : tensor<13x10xf16>
  %r = tensor.unpack %a inner_dims_pos = [0, 1] inner_tiles = [8, 4] into %e : tensor<2x3x8x4xf16> -> tensor<13x10xf16>
  return %r : tensor<13x10xf16>
}
