// Which elements are seen, by linalg.index
// arrays: a 40x40
// result: np.where(np.tril(np.ones((40, 40), bool)), a, -1.0)
func.func @f(%a: tensor<40x40xf32>) -> tensor<40x40xf32> {
  %e = tensor.empty() : tensor<40x40xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%a : tensor<40x40xf32>) outs(%e : tensor<40x40xf32>) {
  ^bb0(%x: f32, %o: f32):
    %low = arith.constant -1.0 : f32
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %c = arith.cmpi sge, %i, %j : index
    %y = arith.select %c, %x, %low : f32
    linalg.yield %y : f32
  } -> tensor<40x40xf32>
  return %r : tensor<40x40xf32>
}
