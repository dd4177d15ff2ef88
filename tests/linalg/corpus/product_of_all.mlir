// To one number
// arrays: a 3x5
// result: a.prod()
func.func @f(%a: tensor<3x5xf32>) -> tensor<f32> {
  %init = arith.constant 1.0 : f32
  %e = tensor.empty() : tensor<f32>
  %s = linalg.fill ins(%init : f32) outs(%e : tensor<f32>) -> tensor<f32>
  %r = linalg.reduce { arith.mulf } ins(%a : tensor<3x5xf32>) outs(%s : tensor<f32>) dimensions = [0, 1]
  return %r : tensor<f32>
}
