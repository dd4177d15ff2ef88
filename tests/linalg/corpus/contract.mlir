// linalg.contract with a batch and permuted dimensions
// arrays: a 17x3x32, b 32x24x3
// result: np.einsum('mbk,knb->bmn', a, b)
// page: https://mlir.llvm.org/docs/Dialects/Linalg/#linalgcontract-linalgcontractop
func.func @f(%a: tensor<17x3x32xf16>, %b: tensor<32x24x3xf16>) -> tensor<3x17x24xf32> {
  %zero = arith.constant 0.0 : f32
  %c_e = tensor.empty() : tensor<3x17x24xf32>
  %c_0 = linalg.fill ins(%zero : f32) outs(%c_e : tensor<3x17x24xf32>) -> tensor<3x17x24xf32>
  %c = linalg.contract indexing_maps = [affine_map<(b, m, n, k) -> (m, b, k)>, affine_map<(b, m, n, k) -> (k, n, b)>, affine_map<(b, m, n, k) -> (b, m, n)>] ins(%a, %b : tensor<17x3x32xf16>, tensor<32x24x3xf16>) outs(%c_0 : tensor<3x17x24xf32>) -> tensor<3x17x24xf32>
  return %c : tensor<3x17x24xf32>
}
