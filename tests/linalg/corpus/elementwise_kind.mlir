// linalg.elementwise with a broadcast map
// arrays: a 33x40, b 40
// result: np.maximum(a, b)
// page: https://mlir.llvm.org/docs/Dialects/Linalg/#linalgelementwise-linalgelementwiseop
func.func @f(%a: tensor<33x40xf32>, %b: tensor<40xf32>) -> tensor<33x40xf32> {
  %e = tensor.empty() : tensor<33x40xf32>
  %r = linalg.elementwise kind=#linalg.elementwise_kind<max_signed>
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>]
      ins(%a, %b : tensor<33x40xf32>, tensor<40xf32>) outs(%e : tensor<33x40xf32>) -> tensor<33x40xf32>
  return %r : tensor<33x40xf32>
}
