// A convolution as a generic with sums of places
// arrays: x 2x10x11x16, w 3x3x16x8
// result: np.einsum('nhwcyx,yxcf->nhwf', np.lib.stride_tricks.sliding_window_view(x, (3, 3), (1, 2)), w)
func.func @f(%x: tensor<2x10x11x16xf16>, %w: tensor<3x3x16x8xf16>) -> tensor<2x8x9x8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x8x9x8xf32>
  %s = linalg.fill ins(%zero : f32) outs(%e : tensor<2x8x9x8xf32>) -> tensor<2x8x9x8xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(n, h, w, f, y, x, c) -> (n, h + y, w + x, c)>, affine_map<(n, h, w, f, y, x, c) -> (y, x, c, f)>, affine_map<(n, h, w, f, y, x, c) -> (n, h, w, f)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%x, %w : tensor<2x10x11x16xf16>, tensor<3x3x16x8xf16>) outs(%s : tensor<2x8x9x8xf32>) {
  ^bb0(%a: f16, %b: f16, %acc: f32):
    %a1 = arith.extf %a : f16 to f32
    %b1 = arith.extf %b : f16 to f32
    %p = arith.mulf %a1, %b1 : f32
    %t = arith.addf %acc, %p : f32
    linalg.yield %t : f32
  } -> tensor<2x8x9x8xf32>
  return %r : tensor<2x8x9x8xf32>
}
