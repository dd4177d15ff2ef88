// A comparison to i1 and a choice by it
// arrays: a 33x40, b 33x40
// result: np.where(a > b, a, 0)
func.func @f(%a: tensor<33x40xf32>, %b: tensor<33x40xf32>) -> tensor<33x40xf32> {
  %zero = arith.constant 0.0 : f32
  %e1 = tensor.empty() : tensor<33x40xi1>
  %p = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%a, %b : tensor<33x40xf32>, tensor<33x40xf32>) outs(%e1 : tensor<33x40xi1>) {
  ^bb0(%x: f32, %y: f32, %o: i1):
    %c = arith.cmpf ogt, %x, %y : f32
    linalg.yield %c : i1
  } -> tensor<33x40xi1>
  %e2 = tensor.empty() : tensor<33x40xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%p, %a : tensor<33x40xi1>, tensor<33x40xf32>) outs(%e2 : tensor<33x40xf32>) {
  ^bb0(%c: i1, %x: f32, %o: f32):
    %s = arith.select %c, %x, %zero : f32
    linalg.yield %s : f32
  } -> tensor<33x40xf32>
  return %r : tensor<33x40xf32>
}
