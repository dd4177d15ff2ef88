// A linear layer of torch in bf16: products into bf16, a bias of one row, a relu
// arrays: x 48x64, w 40x64, b 40
// result: np.maximum(x @ w.T + b, 0)
#every = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d1)>
func.func @f(%x: tensor<48x64xbf16>, %w: tensor<40x64xbf16>, %b: tensor<40xbf16>) -> tensor<48x40xbf16> {
  %cst = arith.constant 0.000000e+00 : bf16
  %0 = tensor.empty() : tensor<64x40xbf16>
  %transposed = linalg.transpose ins(%w : tensor<40x64xbf16>) outs(%0 : tensor<64x40xbf16>) permutation = [1, 0]
  %1 = tensor.empty() : tensor<48x40xbf16>
  %2 = linalg.fill ins(%cst : bf16) outs(%1 : tensor<48x40xbf16>) -> tensor<48x40xbf16>
  %3 = linalg.matmul ins(%x, %transposed : tensor<48x64xbf16>, tensor<64x40xbf16>) outs(%2 : tensor<48x40xbf16>) -> tensor<48x40xbf16>
  %4 = linalg.generic {indexing_maps = [#every, #row, #every], iterator_types = ["parallel", "parallel"]} ins(%3, %b : tensor<48x40xbf16>, tensor<40xbf16>) outs(%1 : tensor<48x40xbf16>) {
  ^bb0(%in: bf16, %in_0: bf16, %out: bf16):
    %6 = arith.addf %in, %in_0 : bf16
    linalg.yield %6 : bf16
  } -> tensor<48x40xbf16>
  %5 = linalg.generic {indexing_maps = [#every, #every], iterator_types = ["parallel", "parallel"]} ins(%4 : tensor<48x40xbf16>) outs(%1 : tensor<48x40xbf16>) {
  ^bb0(%in: bf16, %out: bf16):
    %6 = arith.cmpf ugt, %in, %cst : bf16
    %7 = arith.select %6, %in, %cst : bf16
    linalg.yield %7 : bf16
  } -> tensor<48x40xbf16>
  return %5 : tensor<48x40xbf16>
}
