// Two products of f32 with a ReLU
// arrays: x 17x24, w 24x40, v 40x10
// result: np.maximum(x @ w, 0) @ v
func.func @f(%x: tensor<17x24xf32>, %w: tensor<24x40xf32>, %v: tensor<40x10xf32>) -> tensor<17x10xf32> {
  %zero = arith.constant 0.0 : f32
  %e1 = tensor.empty() : tensor<17x40xf32>
  %s1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<17x40xf32>) -> tensor<17x40xf32>
  %h = linalg.matmul ins(%x, %w : tensor<17x24xf32>, tensor<24x40xf32>) outs(%s1 : tensor<17x40xf32>) -> tensor<17x40xf32>
  %r = linalg.max ins(%h, %s1 : tensor<17x40xf32>, tensor<17x40xf32>) outs(%e1 : tensor<17x40xf32>) -> tensor<17x40xf32>
  %e2 = tensor.empty() : tensor<17x10xf32>
  %s2 = linalg.fill ins(%zero : f32) outs(%e2 : tensor<17x10xf32>) -> tensor<17x10xf32>
  %y = linalg.matmul ins(%r, %v : tensor<17x40xf32>, tensor<40x10xf32>) outs(%s2 : tensor<17x10xf32>) -> tensor<17x10xf32>
  return %y : tensor<17x10xf32>
}
