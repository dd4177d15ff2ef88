// Batch norm of inference: an f64 constant in the body, computed into its input
// arrays: arg0 2x4x8x8, arg1 4, arg2 4, arg3 4, arg4 4 positive
// result: (arg0 - arg3[:, None, None]) / np.sqrt(arg4 + 1e-5)[:, None, None] * arg1[:, None, None] + arg2[:, None, None]
#map = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#map1 = affine_map<(d0, d1, d2, d3) -> (d1)>
module attributes {torch.debug_module_name = "BatchNorm"} {
  func.func @forward(%arg0: tensor<2x4x8x8xf32>, %arg1: tensor<4xf32>, %arg2: tensor<4xf32>, %arg3: tensor<4xf32>, %arg4: tensor<4xf32>) -> tensor<2x4x8x8xf32> {
    %cst = arith.constant 1.000000e-05 : f64
    %0 = tensor.empty() : tensor<2x4x8x8xf32>
    %1 = linalg.generic {indexing_maps = [#map, #map1, #map1, #map1, #map1, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg0, %arg1, %arg2, %arg3, %arg4 : tensor<2x4x8x8xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) outs(%arg0 : tensor<2x4x8x8xf32>) {
    ^bb0(%in: f32, %in_0: f32, %in_1: f32, %in_2: f32, %in_3: f32, %out: f32):
      %2 = arith.truncf %cst : f64 to f32
      %3 = arith.addf %in_3, %2 : f32
      %4 = math.rsqrt %3 : f32
      %5 = arith.subf %in, %in_2 : f32
      %6 = arith.mulf %5, %4 : f32
      %7 = arith.mulf %6, %in_0 : f32
      %8 = arith.addf %7, %in_1 : f32
      linalg.yield %8 : f32
    } -> tensor<2x4x8x8xf32>
    return %1 : tensor<2x4x8x8xf32>
  }
}
