// Operands transposed by maps on the named operation
// arrays: a 40x33, b 24x40
// result: a.T @ b.T
// page: https://mlir.llvm.org/docs/Dialects/Linalg/#linalgmatmul-linalgmatmulop
func.func @f(%a: tensor<40x33xf16>, %b: tensor<24x40xf16>) -> tensor<33x24xf32> {
  %zero = arith.constant 0.0 : f32
  %c_e = tensor.empty() : tensor<33x24xf32>
  %c_0 = linalg.fill ins(%zero : f32) outs(%c_e : tensor<33x24xf32>) -> tensor<33x24xf32>
  %c = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>] ins(%a, %b : tensor<40x33xf16>, tensor<24x40xf16>) outs(%c_0 : tensor<33x24xf32>) -> tensor<33x24xf32>
  return %c : tensor<33x24xf32>
}
