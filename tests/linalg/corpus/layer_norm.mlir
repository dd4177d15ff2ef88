// Mean, variance, gain and shift
// arrays: a 33x64, g 64, b 64
// result: (a - a.mean(1, keepdims=True)) / np.sqrt(a.var(1, keepdims=True) + 1e-5) * g + b
#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
#col = affine_map<(i, j) -> (j)>
func.func @f(%a: tensor<33x64xf32>, %g: tensor<64xf32>, %b: tensor<64xf32>) -> tensor<33x64xf32> {
  %zero = arith.constant 0.0 : f32
  %n = arith.constant 64.0 : f32
  %eps = arith.constant 1.0e-5 : f32
  %e1 = tensor.empty() : tensor<33xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e1 : tensor<33xf32>) -> tensor<33xf32>
  %sum = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%a : tensor<33x64xf32>) outs(%z : tensor<33xf32>) {
  ^bb0(%x: f32, %s: f32):
    %t = arith.addf %s, %x : f32
    linalg.yield %t : f32
  } -> tensor<33xf32>
  %e2 = tensor.empty() : tensor<33x64xf32>
  %d = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]} ins(%a, %sum : tensor<33x64xf32>, tensor<33xf32>) outs(%e2 : tensor<33x64xf32>) {
  ^bb0(%x: f32, %s: f32, %o: f32):
    %m = arith.divf %s, %n : f32
    %t = arith.subf %x, %m : f32
    linalg.yield %t : f32
  } -> tensor<33x64xf32>
  %sq = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%d : tensor<33x64xf32>) outs(%z : tensor<33xf32>) {
  ^bb0(%x: f32, %s: f32):
    %q = arith.mulf %x, %x : f32
    %t = arith.addf %s, %q : f32
    linalg.yield %t : f32
  } -> tensor<33xf32>
  %r = linalg.generic {indexing_maps = [#id, #row, #col, #col, #id], iterator_types = ["parallel", "parallel"]} ins(%d, %sq, %g, %b : tensor<33x64xf32>, tensor<33xf32>, tensor<64xf32>, tensor<64xf32>) outs(%e2 : tensor<33x64xf32>) {
  ^bb0(%x: f32, %s: f32, %gain: f32, %shift: f32, %o: f32):
    %v = arith.divf %s, %n : f32
    %w = arith.addf %v, %eps : f32
    %k = math.rsqrt %w : f32
    %y = arith.mulf %x, %k : f32
    %p = arith.mulf %y, %gain : f32
    %t = arith.addf %p, %shift : f32
    linalg.yield %t : f32
  } -> tensor<33x64xf32>
  return %r : tensor<33x64xf32>
}
