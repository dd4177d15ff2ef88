// A layer norm as torch-mlir writes it
// arrays: arg0 2x5x32, w 32, b 32
// result: (arg0 - arg0.mean(-1, keepdims=True)) / np.sqrt(arg0.var(-1, keepdims=True) + 1e-5) * w + b
#map = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#map1 = affine_map<(d0, d1, d2) -> (d0, d1, 0)>
#map2 = affine_map<(d0, d1, d2) -> (d2)>
module attributes {torch.debug_module_name = "LayerNorm"} {
  func.func @forward(%arg0: tensor<2x5x32xf32>, %w: tensor<32xf32>, %b: tensor<32xf32>) -> tensor<2x5x32xf32> {
    %cst = arith.constant 0.000000e+00 : f32
    %cst_0 = arith.constant 1.000000e-05 : f32
    %cst_1 = arith.constant 3.200000e+01 : f32
    %0 = tensor.empty() : tensor<2x5x1xf32>
    %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<2x5x1xf32>) -> tensor<2x5x1xf32>
    %2 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "reduction"]} ins(%arg0 : tensor<2x5x32xf32>) outs(%1 : tensor<2x5x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %12 = arith.addf %in, %out : f32
      linalg.yield %12 : f32
    } -> tensor<2x5x1xf32>
    %3 = linalg.generic {indexing_maps = [#map1, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%2 : tensor<2x5x1xf32>) outs(%0 : tensor<2x5x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %12 = arith.divf %in, %cst_1 : f32
      linalg.yield %12 : f32
    } -> tensor<2x5x1xf32>
    %4 = tensor.empty() : tensor<2x5x32xf32>
    %5 = linalg.generic {indexing_maps = [#map1, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%3 : tensor<2x5x1xf32>) outs(%4 : tensor<2x5x32xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<2x5x32xf32>
    %6 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%arg0, %5 : tensor<2x5x32xf32>, tensor<2x5x32xf32>) outs(%4 : tensor<2x5x32xf32>) {
    ^bb0(%in: f32, %in_2: f32, %out: f32):
      %12 = arith.subf %in, %in_2 : f32
      linalg.yield %12 : f32
    } -> tensor<2x5x32xf32>
    %7 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%6, %6 : tensor<2x5x32xf32>, tensor<2x5x32xf32>) outs(%4 : tensor<2x5x32xf32>) {
    ^bb0(%in: f32, %in_2: f32, %out: f32):
      %12 = arith.mulf %in, %in_2 : f32
      linalg.yield %12 : f32
    } -> tensor<2x5x32xf32>
    %8 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "reduction"]} ins(%7 : tensor<2x5x32xf32>) outs(%1 : tensor<2x5x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %12 = arith.addf %in, %out : f32
      linalg.yield %12 : f32
    } -> tensor<2x5x1xf32>
    %9 = linalg.generic {indexing_maps = [#map1, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%8 : tensor<2x5x1xf32>) outs(%0 : tensor<2x5x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %12 = arith.divf %in, %cst_1 : f32
      %13 = arith.addf %12, %cst_0 : f32
      %14 = math.rsqrt %13 : f32
      linalg.yield %14 : f32
    } -> tensor<2x5x1xf32>
    %10 = linalg.generic {indexing_maps = [#map, #map1, #map2, #map2, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%6, %9, %w, %b : tensor<2x5x32xf32>, tensor<2x5x1xf32>, tensor<32xf32>, tensor<32xf32>) outs(%4 : tensor<2x5x32xf32>) {
    ^bb0(%in: f32, %in_2: f32, %in_3: f32, %in_4: f32, %out: f32):
      %12 = arith.mulf %in, %in_2 : f32
      %13 = arith.mulf %12, %in_3 : f32
      %14 = arith.addf %13, %in_4 : f32
      linalg.yield %14 : f32
    } -> tensor<2x5x32xf32>
    return %10 : tensor<2x5x32xf32>
  }
}
