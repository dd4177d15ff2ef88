// Sums of a sliding window whose length an empty operand says
// arrays: x 4x16
// result: np.lib.stride_tricks.sliding_window_view(x, 4, 1).sum(-1)
func.func @f(%x: tensor<4x16xf32>) -> tensor<4x13xf32> {
  %z = arith.constant 0.0 : f32
  %w = tensor.empty() : tensor<4xf32>
  %e = tensor.empty() : tensor<4x13xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<4x13xf32>) -> tensor<4x13xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i,j,k)->(i,j+k)>, affine_map<(i,j,k)->(k)>, affine_map<(i,j,k)->(i,j)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : tensor<4x16xf32>, tensor<4xf32>) outs(%f : tensor<4x13xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %s = arith.addf %a, %o : f32
    linalg.yield %s : f32
  } -> tensor<4x13xf32>
  return %r : tensor<4x13xf32>
}
