// A group norm: sums over three loops that stay as single elements
// arrays: x 2x6x4x4
// result: ((lambda g: (g - g.mean((2, 3, 4), keepdims=True)) / np.sqrt(g.var((2, 3, 4), keepdims=True) + 1e-5))(x.reshape(2, 2, 3, 4, 4))).reshape(2, 6, 4, 4)
func.func @f(%x: tensor<2x6x4x4xf32>) -> tensor<2x6x4x4xf32> {
  %z = arith.constant 0.0 : f32
  %n = arith.constant 48.0 : f32
  %eps = arith.constant 1.0e-5 : f32
  %x5 = tensor.expand_shape %x [[0], [1, 2], [3], [4]] output_shape [2, 2, 3, 4, 4] : tensor<2x6x4x4xf32> into tensor<2x2x3x4x4xf32>
  %e = tensor.empty() : tensor<2x2x1x1x1xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<2x2x1x1x1xf32>) -> tensor<2x2x1x1x1xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(a,b,c,d,e)->(a,b,c,d,e)>, affine_map<(a,b,c,d,e)->(a,b,0,0,0)>], iterator_types = ["parallel", "parallel", "reduction", "reduction", "reduction"]} ins(%x5 : tensor<2x2x3x4x4xf32>) outs(%f : tensor<2x2x1x1x1xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = arith.addf %a, %o : f32
    linalg.yield %t : f32
  } -> tensor<2x2x1x1x1xf32>
  %q = linalg.generic {indexing_maps = [affine_map<(a,b,c,d,e)->(a,b,c,d,e)>, affine_map<(a,b,c,d,e)->(a,b,0,0,0)>], iterator_types = ["parallel", "parallel", "reduction", "reduction", "reduction"]} ins(%x5 : tensor<2x2x3x4x4xf32>) outs(%f : tensor<2x2x1x1x1xf32>) {
  ^bb0(%a: f32, %o: f32):
    %aa = arith.mulf %a, %a : f32
    %t = arith.addf %aa, %o : f32
    linalg.yield %t : f32
  } -> tensor<2x2x1x1x1xf32>
  %eo = tensor.empty() : tensor<2x2x3x4x4xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(a,b,c,d,e)->(a,b,c,d,e)>, affine_map<(a,b,c,d,e)->(a,b,0,0,0)>, affine_map<(a,b,c,d,e)->(a,b,0,0,0)>, affine_map<(a,b,c,d,e)->(a,b,c,d,e)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%x5, %s, %q : tensor<2x2x3x4x4xf32>, tensor<2x2x1x1x1xf32>, tensor<2x2x1x1x1xf32>) outs(%eo : tensor<2x2x3x4x4xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32, %o: f32):
    %m = arith.divf %b, %n : f32
    %m2 = arith.mulf %m, %m : f32
    %q2 = arith.divf %c, %n : f32
    %v = arith.subf %q2, %m2 : f32
    %ve = arith.addf %v, %eps : f32
    %r = math.rsqrt %ve : f32
    %d = arith.subf %a, %m : f32
    %t = arith.mulf %d, %r : f32
    linalg.yield %t : f32
  } -> tensor<2x2x3x4x4xf32>
  %r = tensor.collapse_shape %y [[0], [1, 2], [3], [4]] : tensor<2x2x3x4x4xf32> into tensor<2x6x4x4xf32>
  return %r : tensor<2x6x4x4xf32>
}
