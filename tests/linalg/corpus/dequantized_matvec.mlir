// Bytes scaled in groups, times a vector: two loops are summed
// arrays: q 16x4x32, s 16x4, z 16x4, x 4x32
// result: (((q % 256) - z[..., None]) * s[..., None] * x).sum((1, 2))
#map = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#map1 = affine_map<(d0, d1, d2) -> (d0, d1)>
#map2 = affine_map<(d0, d1, d2) -> (d1, d2)>
#map3 = affine_map<(d0, d1, d2) -> (d0)>
module {
  func.func @dequant(%q: tensor<16x4x32xi8>, %s: tensor<16x4xf32>, %z: tensor<16x4xf32>, %x: tensor<4x32xf32>) -> tensor<16xf32> {
    %cst = arith.constant 0.0 : f32
    %0 = tensor.empty() : tensor<16x4x32xf32>
    %1 = tensor.empty() : tensor<16xf32>
    %2 = linalg.fill ins(%cst : f32) outs(%1 : tensor<16xf32>) -> tensor<16xf32>
    %3 = linalg.generic {indexing_maps = [#map, #map1, #map1, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%q, %s, %z : tensor<16x4x32xi8>, tensor<16x4xf32>, tensor<16x4xf32>) outs(%0 : tensor<16x4x32xf32>) {
    ^bb0(%in: i8, %in_0: f32, %in_1: f32, %out: f32):
      %5 = arith.extui %in : i8 to i32
      %6 = arith.uitofp %5 : i32 to f32
      %7 = arith.subf %6, %in_1 : f32
      %8 = arith.mulf %7, %in_0 : f32
      linalg.yield %8 : f32
    } -> tensor<16x4x32xf32>
    %4 = linalg.generic {indexing_maps = [#map2, #map, #map3], iterator_types = ["parallel", "reduction", "reduction"]} ins(%x, %3 : tensor<4x32xf32>, tensor<16x4x32xf32>) outs(%2 : tensor<16xf32>) {
    ^bb0(%in: f32, %in_0: f32, %out: f32):
      %5 = arith.mulf %in, %in_0 : f32
      %6 = arith.addf %5, %out : f32
      linalg.yield %6 : f32
    } -> tensor<16xf32>
    return %4 : tensor<16xf32>
  }
}
