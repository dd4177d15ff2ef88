// Two dimensions of rows, columns and sums each
// arrays: a 4x5x3x16, b 3x16x6x7
// result: np.einsum('ijkl,klmn->ijmn', a, b)
// page: https://mlir.llvm.org/docs/Dialects/Linalg/#linalgcontract-linalgcontractop
func.func @f(%a: tensor<4x5x3x16xf16>, %b: tensor<3x16x6x7xf16>) -> tensor<4x5x6x7xf32> {
  %zero = arith.constant 0.0 : f32
  %c_e = tensor.empty() : tensor<4x5x6x7xf32>
  %c_0 = linalg.fill ins(%zero : f32) outs(%c_e : tensor<4x5x6x7xf32>) -> tensor<4x5x6x7xf32>
  %c = linalg.contract indexing_maps = [affine_map<(i, j, m, n, k, l) -> (i, j, k, l)>, affine_map<(i, j, m, n, k, l) -> (k, l, m, n)>, affine_map<(i, j, m, n, k, l) -> (i, j, m, n)>] ins(%a, %b : tensor<4x5x3x16xf16>, tensor<3x16x6x7xf16>) outs(%c_0 : tensor<4x5x6x7xf32>) -> tensor<4x5x6x7xf32>
  return %c : tensor<4x5x6x7xf32>
}
