// GELU by erf, as torch-mlir prints it
// arrays: a 33x40
// result: a * (1 + np.vectorize(math.erf)(a / math.sqrt(2))) / 2
func.func @f(%a: tensor<33x40xf32>) -> tensor<33x40xf32> {
  %e = tensor.empty() : tensor<33x40xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%a : tensor<33x40xf32>) outs(%e : tensor<33x40xf32>) {
  ^bb0(%x: f32, %o: f32):
    %half = arith.constant 5.0e-01 : f32
    %one = arith.constant 1.0 : f32
    %root = arith.constant 1.41421354 : f32
    %d = arith.divf %x, %root : f32
    %g = math.erf %d : f32
    %s = arith.addf %g, %one : f32
    %m = arith.mulf %s, %half : f32
    %y = arith.mulf %x, %m : f32
    linalg.yield %y : f32
  } -> tensor<33x40xf32>
  return %r : tensor<33x40xf32>
}
