// Bytes
// arrays: a 33x40
// result: a.min(1)
func.func @f(%a: tensor<33x40xi8>) -> tensor<33xi8> {
  %init = arith.constant 127 : i8
  %e = tensor.empty() : tensor<33xi8>
  %s = linalg.fill ins(%init : i8) outs(%e : tensor<33xi8>) -> tensor<33xi8>
  %r = linalg.reduce { arith.minsi } ins(%a : tensor<33x40xi8>) outs(%s : tensor<33xi8>) dimensions = [1]
  return %r : tensor<33xi8>
}
