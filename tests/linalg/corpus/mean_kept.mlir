// A mean whose dimension stays as one element
// arrays: arg0 2x6x20
// result: arg0.mean(-1, keepdims=True)
#map = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#map1 = affine_map<(d0, d1, d2) -> (d0, d1, 0)>
module {
  func.func @mean(%arg0: tensor<2x6x20xf32>) -> tensor<2x6x1xf32> {
    %cst = arith.constant 0.000000e+00 : f32
    %cst_0 = arith.constant 2.000000e+01 : f32
    %0 = tensor.empty() : tensor<2x6x1xf32>
    %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<2x6x1xf32>) -> tensor<2x6x1xf32>
    %2 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "reduction"]} ins(%arg0 : tensor<2x6x20xf32>) outs(%1 : tensor<2x6x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %4 = arith.addf %in, %out : f32
      linalg.yield %4 : f32
    } -> tensor<2x6x1xf32>
    %3 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, 0)>, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%2 : tensor<2x6x1xf32>) outs(%0 : tensor<2x6x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %4 = arith.divf %in, %cst_0 : f32
      linalg.yield %4 : f32
    } -> tensor<2x6x1xf32>
    return %3 : tensor<2x6x1xf32>
  }
}
