// Windows laid out as rows
// arrays: x 10x11
// result: np.lib.stride_tricks.sliding_window_view(x, (3, 3)).reshape(72, 9)
func.func @f(%x: tensor<10x11xf32>) -> tensor<72x9xf32> {
  %e = tensor.empty() : tensor<8x9x3x3xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(h, w, y, x) -> (h + y, w + x)>, affine_map<(h, w, y, x) -> (h, w, y, x)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%x : tensor<10x11xf32>) outs(%e : tensor<8x9x3x3xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<8x9x3x3xf32>
  %c = tensor.collapse_shape %r [[0, 1], [2, 3]] : tensor<8x9x3x3xf32> into tensor<72x9xf32>
  return %c : tensor<72x9xf32>
}
