// Minima along a dimension in the middle
// arrays: x 4x5x6
// result: x.min(1)
func.func @f(%x: tensor<4x5x6xf32>) -> tensor<4x6xf32> {
  %i = arith.constant 0x7F800000 : f32
  %e = tensor.empty() : tensor<4x6xf32>
  %f = linalg.fill ins(%i : f32) outs(%e : tensor<4x6xf32>) -> tensor<4x6xf32>
  %r = linalg.reduce { arith.minimumf } ins(%x : tensor<4x5x6xf32>) outs(%f : tensor<4x6xf32>) dimensions = [1]
  return %r : tensor<4x6xf32>
}
