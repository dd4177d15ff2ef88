// Scores, softmax, mixture
// arrays: q 2x24x32, k 2x40x32, v 2x40x32
// result: (lambda s: (np.exp(s - s.max(2, keepdims=True)) / np.exp(s - s.max(2, keepdims=True)).sum(2, keepdims=True)).astype(np.float16).astype(float))(q @ k.transpose(0, 2, 1) / 8) @ v
#id = affine_map<(b, i, j) -> (b, i, j)>
func.func @f(%q: tensor<2x24x32xf16>, %k: tensor<2x40x32xf16>, %v: tensor<2x40x32xf16>) -> tensor<2x24x32xf32> {
  %zero = arith.constant 0.0 : f32
  %factor = arith.constant 1.25e-01 : f32
  %e1 = tensor.empty() : tensor<2x24x40xf32>
  %s1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<2x24x40xf32>) -> tensor<2x24x40xf32>
  %s = linalg.batch_matmul_transpose_b ins(%q, %k : tensor<2x24x32xf16>, tensor<2x40x32xf16>) outs(%s1 : tensor<2x24x40xf32>) -> tensor<2x24x40xf32>
  %t = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]} ins(%s : tensor<2x24x40xf32>) outs(%e1 : tensor<2x24x40xf32>) {
  ^bb0(%x: f32, %o: f32):
    %y = arith.mulf %x, %factor : f32
    linalg.yield %y : f32
  } -> tensor<2x24x40xf32>
  %p = linalg.softmax dimension(2) ins(%t : tensor<2x24x40xf32>) outs(%e1 : tensor<2x24x40xf32>) -> tensor<2x24x40xf32>
  %e2 = tensor.empty() : tensor<2x24x40xf16>
  %h = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]} ins(%p : tensor<2x24x40xf32>) outs(%e2 : tensor<2x24x40xf16>) {
  ^bb0(%x: f32, %o: f16):
    %y = arith.truncf %x : f32 to f16
    linalg.yield %y : f16
  } -> tensor<2x24x40xf16>
  %e3 = tensor.empty() : tensor<2x24x32xf32>
  %s3 = linalg.fill ins(%zero : f32) outs(%e3 : tensor<2x24x32xf32>) -> tensor<2x24x32xf32>
  %r = linalg.batch_matmul ins(%h, %v : tensor<2x24x40xf16>, tensor<2x40x32xf16>) outs(%s3 : tensor<2x24x32xf32>) -> tensor<2x24x32xf32>
  return %r : tensor<2x24x32xf32>
}
