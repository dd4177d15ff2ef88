// Two results of one reduction
// arrays: a 17x40
// result: a.max(1)
// result: a.argmax(1)
func.func @f(%a: tensor<17x40xf32>) -> (tensor<17xf32>, tensor<17xi64>) {
  %low = arith.constant 0xFF800000 : f32
  %none = arith.constant 0 : i64
  %ev = tensor.empty() : tensor<17xf32>
  %sv = linalg.fill ins(%low : f32) outs(%ev : tensor<17xf32>) -> tensor<17xf32>
  %ei = tensor.empty() : tensor<17xi64>
  %si = linalg.fill ins(%none : i64) outs(%ei : tensor<17xi64>) -> tensor<17xi64>
  %r:2 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}
      ins(%a : tensor<17x40xf32>) outs(%sv, %si : tensor<17xf32>, tensor<17xi64>) {
  ^bb0(%x: f32, %v: f32, %at: i64):
    %j = linalg.index 1 : index
    %k = arith.index_cast %j : index to i64
    %c = arith.cmpf ogt, %x, %v : f32
    %nv = arith.select %c, %x, %v : f32
    %ni = arith.select %c, %k, %at : i64
    linalg.yield %nv, %ni : f32, i64
  } -> (tensor<17xf32>, tensor<17xi64>)
  return %r#0, %r#1 : tensor<17xf32>, tensor<17xi64>
}
