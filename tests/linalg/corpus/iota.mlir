// Numbers by place
// arrays: 
// result: np.add.outer(40 * np.arange(33), np.arange(40))
func.func @f() -> tensor<33x40xi32> {
  %e = tensor.empty() : tensor<33x40xi32>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      outs(%e : tensor<33x40xi32>) {
  ^bb0(%o: i32):
    %c40 = arith.constant 40 : index
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %p = arith.muli %i, %c40 : index
    %s = arith.addi %p, %j : index
    %y = arith.index_cast %s : index to i32
    linalg.yield %y : i32
  } -> tensor<33x40xi32>
  return %r : tensor<33x40xi32>
}
