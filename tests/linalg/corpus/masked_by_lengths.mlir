// A mask of i1 from lengths, and a choice by it
// arrays: x 6x10, l 6 below 11
// result: np.where(np.arange(10) < l[:, None], x, 0)
func.func @f(%x: tensor<6x10xf32>, %l: tensor<6xi64>) -> tensor<6x10xf32> {
  %z = arith.constant 0.0 : f32
  %eb = tensor.empty() : tensor<6x10xi1>
  %m = linalg.generic {indexing_maps = [affine_map<(i,j)->(i)>, affine_map<(i,j)->(i,j)>], iterator_types = ["parallel", "parallel"]} ins(%l : tensor<6xi64>) outs(%eb : tensor<6x10xi1>) {
  ^bb0(%a: i64, %o: i1):
    %k = linalg.index 1 : index
    %k64 = arith.index_cast %k : index to i64
    %c = arith.cmpi slt, %k64, %a : i64
    linalg.yield %c : i1
  } -> tensor<6x10xi1>
  %e = tensor.empty() : tensor<6x10xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i,j)->(i,j)>, affine_map<(i,j)->(i,j)>, affine_map<(i,j)->(i,j)>], iterator_types = ["parallel", "parallel"]} ins(%m, %x : tensor<6x10xi1>, tensor<6x10xf32>) outs(%e : tensor<6x10xf32>) {
  ^bb0(%c: i1, %a: f32, %o: f32):
    %s = arith.select %c, %a, %z : f32
    linalg.yield %s : f32
  } -> tensor<6x10xf32>
  return %r : tensor<6x10xf32>
}
