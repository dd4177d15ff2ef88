// An average, channels first
// arrays: x 2x3x8x8
// result: np.lib.stride_tricks.sliding_window_view(x, (2, 2), (2, 3))[:, :, ::2, ::2].mean((-1, -2))
#map = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
module {
  func.func @avg(%x: tensor<2x3x8x8xf16>) -> tensor<2x3x4x4xf16> {
    %z = arith.constant 0.0 : f16
    %four = arith.constant 4.0 : f16
    %e = tensor.empty() : tensor<2x3x4x4xf16>
    %f = linalg.fill ins(%z : f16) outs(%e : tensor<2x3x4x4xf16>) -> tensor<2x3x4x4xf16>
    %w = tensor.empty() : tensor<2x2xf16>
    %p = linalg.pooling_nchw_sum {dilations = dense<1> : vector<2xi64>, strides = dense<2> : vector<2xi64>} ins(%x, %w : tensor<2x3x8x8xf16>, tensor<2x2xf16>) outs(%f : tensor<2x3x4x4xf16>) -> tensor<2x3x4x4xf16>
    %r = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%p : tensor<2x3x4x4xf16>) outs(%e : tensor<2x3x4x4xf16>) {
    ^bb0(%a: f16, %o: f16):
      %d = arith.divf %a, %four : f16
      linalg.yield %d : f16
    } -> tensor<2x3x4x4xf16>
    return %r : tensor<2x3x4x4xf16>
  }
}
