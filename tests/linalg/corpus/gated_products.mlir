// Two products that begin from one fill, and a gate
// arrays: x 32x32, a 32x32, b 32x32
// result: x @ a / (1 + np.exp(-(x @ a))) * (x @ b)
func.func @f(%x: tensor<32x32xf16>, %a: tensor<32x32xf16>, %b: tensor<32x32xf16>) -> tensor<32x32xf32> {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<32x32xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<32x32xf32>) -> tensor<32x32xf32>
  %g = linalg.matmul ins(%x, %a : tensor<32x32xf16>, tensor<32x32xf16>) outs(%f : tensor<32x32xf32>) -> tensor<32x32xf32>
  %u = linalg.matmul ins(%x, %b : tensor<32x32xf16>, tensor<32x32xf16>) outs(%f : tensor<32x32xf32>) -> tensor<32x32xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i,j)->(i,j)>, affine_map<(i,j)->(i,j)>, affine_map<(i,j)->(i,j)>], iterator_types = ["parallel", "parallel"]} ins(%g, %u : tensor<32x32xf32>, tensor<32x32xf32>) outs(%e : tensor<32x32xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %n = arith.negf %p : f32
    %x0 = math.exp %n : f32
    %one = arith.constant 1.0 : f32
    %d = arith.addf %x0, %one : f32
    %s = arith.divf %p, %d : f32
    %t = arith.mulf %s, %q : f32
    linalg.yield %t : f32
  } -> tensor<32x32xf32>
  return %r : tensor<32x32xf32>
}
