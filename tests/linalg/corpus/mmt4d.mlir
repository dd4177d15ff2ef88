// Tiles of tiles, as IREE packs them
// arrays: a 2x4x8x16, b 3x4x8x16
// result: np.einsum('mkij,nklj->mnil', a, b)
func.func @f(%a: tensor<2x4x8x16xf16>, %b: tensor<3x4x8x16xf16>) -> tensor<2x3x8x8xf32> {
  %zero = arith.constant 0.0 : f32
  %c_e = tensor.empty() : tensor<2x3x8x8xf32>
  %c_0 = linalg.fill ins(%zero : f32) outs(%c_e : tensor<2x3x8x8xf32>) -> tensor<2x3x8x8xf32>
  %c = linalg.mmt4d ins(%a, %b : tensor<2x4x8x16xf16>, tensor<3x4x8x16xf16>) outs(%c_0 : tensor<2x3x8x8xf32>) -> tensor<2x3x8x8xf32>
  return %c : tensor<2x3x8x8xf32>
}
