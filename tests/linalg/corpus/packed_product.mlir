// A product of packed matrices, as IREE forms it
// arrays: a 16x32, b 24x32
// result: a @ b.T
func.func @f(%a: tensor<16x32xf16>, %b: tensor<24x32xf16>) -> tensor<16x24xf32> {
  %zero = arith.constant 0.0 : f32
  %ea = tensor.empty() : tensor<2x2x8x16xf16>
  %pa = tensor.pack %a inner_dims_pos = [0, 1] inner_tiles = [8, 16] into %ea : tensor<16x32xf16> -> tensor<2x2x8x16xf16>
  %eb = tensor.empty() : tensor<3x2x8x16xf16>
  %pb = tensor.pack %b inner_dims_pos = [0, 1] inner_tiles = [8, 16] into %eb : tensor<24x32xf16> -> tensor<3x2x8x16xf16>
  %ec = tensor.empty() : tensor<2x3x8x8xf32>
  %s = linalg.fill ins(%zero : f32) outs(%ec : tensor<2x3x8x8xf32>) -> tensor<2x3x8x8xf32>
  %c = linalg.mmt4d ins(%pa, %pb : tensor<2x2x8x16xf16>, tensor<3x2x8x16xf16>) outs(%s : tensor<2x3x8x8xf32>) -> tensor<2x3x8x8xf32>
  %eo = tensor.empty() : tensor<16x24xf32>
  %r = tensor.unpack %c inner_dims_pos = [0, 1] inner_tiles = [8, 8] into %eo : tensor<2x3x8x8xf32> -> tensor<16x24xf32>
  return %r : tensor<16x24xf32>
}
