// Halves exchanged and one negated, times cosines and sines
// arrays: x 2x8x16, cos 8x16, sin 8x16
// result: x * cos + np.concatenate([-x[..., 8:], x[..., :8]], -1) * sin
func.func @f(%x: tensor<2x8x16xf32>, %cos: tensor<8x16xf32>, %sin: tensor<8x16xf32>) -> tensor<2x8x16xf32> {
  %a = tensor.extract_slice %x[0, 0, 0] [2, 8, 8] [1, 1, 1] : tensor<2x8x16xf32> to tensor<2x8x8xf32>
  %b = tensor.extract_slice %x[0, 0, 8] [2, 8, 8] [1, 1, 1] : tensor<2x8x16xf32> to tensor<2x8x8xf32>
  %eh = tensor.empty() : tensor<2x8x8xf32>
  %nb = linalg.generic {indexing_maps = [affine_map<(a,b,c)->(a,b,c)>, affine_map<(a,b,c)->(a,b,c)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%b : tensor<2x8x8xf32>) outs(%eh : tensor<2x8x8xf32>) {
  ^bb0(%v: f32, %o: f32):
    %n = arith.negf %v : f32
    linalg.yield %n : f32
  } -> tensor<2x8x8xf32>
  %e = tensor.empty() : tensor<2x8x16xf32>
  %i0 = tensor.insert_slice %nb into %e[0, 0, 0] [2, 8, 8] [1, 1, 1] : tensor<2x8x8xf32> into tensor<2x8x16xf32>
  %rot = tensor.insert_slice %a into %i0[0, 0, 8] [2, 8, 8] [1, 1, 1] : tensor<2x8x8xf32> into tensor<2x8x16xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(a,b,c)->(a,b,c)>, affine_map<(a,b,c)->(a,b,c)>, affine_map<(a,b,c)->(b,c)>, affine_map<(a,b,c)->(b,c)>, affine_map<(a,b,c)->(a,b,c)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%x, %rot, %cos, %sin : tensor<2x8x16xf32>, tensor<2x8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>) outs(%e : tensor<2x8x16xf32>) {
  ^bb0(%v: f32, %w: f32, %c: f32, %s: f32, %o: f32):
    %p = arith.mulf %v, %c : f32
    %q = arith.mulf %w, %s : f32
    %t = arith.addf %p, %q : f32
    linalg.yield %t : f32
  } -> tensor<2x8x16xf32>
  return %r : tensor<2x8x16xf32>
}
