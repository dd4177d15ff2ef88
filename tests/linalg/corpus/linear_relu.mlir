// torch.nn.Linear and ReLU
// arrays: x 17x64, w 96x64, b 96
// result: np.maximum(x @ w.T + b, 0)
#id = affine_map<(i, j) -> (i, j)>
#col = affine_map<(i, j) -> (j)>
func.func @f(%x: tensor<?x64xf16>, %w: tensor<96x64xf16>, %b: tensor<96xf16>) -> tensor<?x96xf16> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x64xf16>
  %zero = arith.constant 0.0 : f32
  %we = tensor.empty() : tensor<64x96xf16>
  %wt = linalg.transpose ins(%w : tensor<96x64xf16>) outs(%we : tensor<64x96xf16>) permutation = [1, 0]
  %e = tensor.empty(%n) : tensor<?x96xf32>
  %s = linalg.fill ins(%zero : f32) outs(%e : tensor<?x96xf32>) -> tensor<?x96xf32>
  %p = linalg.matmul ins(%x, %wt : tensor<?x64xf16>, tensor<64x96xf16>) outs(%s : tensor<?x96xf32>) -> tensor<?x96xf32>
  %o = tensor.empty(%n) : tensor<?x96xf16>
  %r = linalg.generic {indexing_maps = [#id, #col, #id], iterator_types = ["parallel", "parallel"]} ins(%p, %b : tensor<?x96xf32>, tensor<96xf16>) outs(%o : tensor<?x96xf16>) {
  ^bb0(%v: f32, %h: f16, %old: f16):
    %g = arith.extf %h : f16 to f32
    %t = arith.addf %v, %g : f32
    %m = arith.maximumf %t, %zero : f32
    %c = arith.truncf %m : f32 to f16
    linalg.yield %c : f16
  } -> tensor<?x96xf16>
  return %r : tensor<?x96xf16>
}
