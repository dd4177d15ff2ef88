// Columns
// arrays: a 300x33
// result: a.sum(0)
func.func @f(%a: tensor<300x33xf32>) -> tensor<33xf32> {
  %init = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<33xf32>
  %s = linalg.fill ins(%init : f32) outs(%e : tensor<33xf32>) -> tensor<33xf32>
  %r = linalg.reduce { arith.addf } ins(%a : tensor<300x33xf32>) outs(%s : tensor<33xf32>) dimensions = [0]
  return %r : tensor<33xf32>
}
