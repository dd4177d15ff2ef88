// Truth values
// arrays: a 33x40 below 2
// result: a.any(1)
func.func @f(%a: tensor<33x40xi1>) -> tensor<33xi1> {
  %init = arith.constant false
  %e = tensor.empty() : tensor<33xi1>
  %s = linalg.fill ins(%init : i1) outs(%e : tensor<33xi1>) -> tensor<33xi1>
  %r = linalg.reduce { arith.ori } ins(%a : tensor<33x40xi1>) outs(%s : tensor<33xi1>) dimensions = [1]
  return %r : tensor<33xi1>
}
