// Rows of a table by numbers that are asserted to be some
// arrays: table 50x16, ids 2x5 below 50
// result: table[ids]
#map = affine_map<(d0, d1) -> (d0, d1)>
#map1 = affine_map<(d0, d1, d2) -> (d0, d1)>
#map2 = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
module {
  func.func @forward(%table: tensor<50x16xf32>, %ids: tensor<2x5xi64>) -> tensor<2x5x16xf32> {
    %c0_i64 = arith.constant 0 : i64
    %c50_i64 = arith.constant 50 : i64
    %0 = tensor.empty() : tensor<2x5x16xf32>
    %1 = linalg.generic {indexing_maps = [#map1, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%ids : tensor<2x5xi64>) outs(%0 : tensor<2x5x16xf32>) {
    ^bb0(%in: i64, %out: f32):
      %2 = arith.cmpi slt, %in, %c50_i64 : i64
      cf.assert %2, "index must be smaller than dim size"
      %3 = arith.cmpi sge, %in, %c0_i64 : i64
      cf.assert %3, "index must be larger or equal to 0"
      %4 = arith.index_cast %in : i64 to index
      %5 = linalg.index 2 : index
      %extracted = tensor.extract %table[%4, %5] : tensor<50x16xf32>
      linalg.yield %extracted : f32
    } -> tensor<2x5x16xf32>
    return %1 : tensor<2x5x16xf32>
  }
}
