// SiLU in halves, computed in f32
// arrays: a 33x40
// result: a / (1 + np.exp(-a))
func.func @f(%a: tensor<33x40xf16>) -> tensor<33x40xf16> {
  %e = tensor.empty() : tensor<33x40xf16>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%a : tensor<33x40xf16>) outs(%e : tensor<33x40xf16>) {
  ^bb0(%h: f16, %o: f16):
    %one = arith.constant 1.0 : f32
    %x = arith.extf %h : f16 to f32
    %n = arith.negf %x : f32
    %p = math.exp %n : f32
    %s = arith.addf %one, %p : f32
    %d = arith.divf %x, %s : f32
    %y = arith.truncf %d : f32 to f16
    linalg.yield %y : f16
  } -> tensor<33x40xf16>
  return %r : tensor<33x40xf16>
}
