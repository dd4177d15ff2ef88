// A product and a relu with a broadcast constant of no dimension
// arrays: arg0 5x7, arg1 7x3
// result: np.maximum(arg0 @ arg1, 0)
module @jit_f {
  func.func public @main(%arg0: tensor<5x7xf32> {mhlo.layout_mode = "default"}, %arg1: tensor<7x3xf32>) -> (tensor<5x3xf32> {jax.result_info = "result"}) {
    %cst = arith.constant dense<0.000000e+00> : tensor<f32>
    %0 = tensor.empty() : tensor<5x3xf32>
    %c = arith.constant 0.0 : f32
    %1 = linalg.fill ins(%c : f32) outs(%0 : tensor<5x3xf32>) -> tensor<5x3xf32>
    %2 = linalg.matmul ins(%arg0, %arg1 : tensor<5x7xf32>, tensor<7x3xf32>) outs(%1 : tensor<5x3xf32>) -> tensor<5x3xf32>
    %3 = tensor.empty() : tensor<5x3xf32>
    %broadcasted = linalg.broadcast ins(%cst : tensor<f32>) outs(%3 : tensor<5x3xf32>) dimensions = [0, 1]
    %4 = tensor.empty() : tensor<5x3xf32>
    %mapped = linalg.map { arith.maximumf } ins(%2, %broadcasted : tensor<5x3xf32>, tensor<5x3xf32>) outs(%4 : tensor<5x3xf32>)
    return %mapped : tensor<5x3xf32>
  }
}
