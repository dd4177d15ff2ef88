// A norm of halves
// arrays: a 33x64, g 64
// result: a / np.sqrt((a * a).mean(1, keepdims=True) + 1e-5) * g
#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
#col = affine_map<(i, j) -> (j)>
func.func @f(%a: tensor<33x64xf16>, %g: tensor<64xf16>) -> tensor<33x64xf16> {
  %zero = arith.constant 0.0 : f32
  %n = arith.constant 64.0 : f32
  %eps = arith.constant 1.0e-5 : f32
  %e1 = tensor.empty() : tensor<33xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e1 : tensor<33xf32>) -> tensor<33xf32>
  %sq = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%a : tensor<33x64xf16>) outs(%z : tensor<33xf32>) {
  ^bb0(%h: f16, %s: f32):
    %x = arith.extf %h : f16 to f32
    %q = arith.mulf %x, %x : f32
    %t = arith.addf %s, %q : f32
    linalg.yield %t : f32
  } -> tensor<33xf32>
  %e2 = tensor.empty() : tensor<33x64xf16>
  %r = linalg.generic {indexing_maps = [#id, #row, #col, #id], iterator_types = ["parallel", "parallel"]} ins(%a, %sq, %g : tensor<33x64xf16>, tensor<33xf32>, tensor<64xf16>) outs(%e2 : tensor<33x64xf16>) {
  ^bb0(%h: f16, %s: f32, %gh: f16, %o: f16):
    %x = arith.extf %h : f16 to f32
    %gain = arith.extf %gh : f16 to f32
    %v = arith.divf %s, %n : f32
    %w = arith.addf %v, %eps : f32
    %k = math.rsqrt %w : f32
    %y = arith.mulf %x, %k : f32
    %p = arith.mulf %y, %gain : f32
    %t = arith.truncf %p : f32 to f16
    linalg.yield %t : f16
  } -> tensor<33x64xf16>
  return %r : tensor<33x64xf16>
}
