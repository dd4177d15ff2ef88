// Rows of a table by numbers
// arrays: i 17 below 40, t 40x64
// result: t[i]
func.func @f(%i: tensor<17xi64>, %t: tensor<40x64xf16>) -> tensor<17x64xf16> {
  %e = tensor.empty() : tensor<17x64xf16>
  %r = linalg.generic {indexing_maps = [affine_map<(n, d) -> (n)>, affine_map<(n, d) -> (n, d)>], iterator_types = ["parallel", "parallel"]}
      ins(%i : tensor<17xi64>) outs(%e : tensor<17x64xf16>) {
  ^bb0(%at: i64, %o: f16):
    %row = arith.index_cast %at : i64 to index
    %d = linalg.index 1 : index
    %x = tensor.extract %t[%row, %d] : tensor<40x64xf16>
    linalg.yield %x : f16
  } -> tensor<17x64xf16>
  return %r : tensor<17x64xf16>
}
