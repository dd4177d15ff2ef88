// linalg.transpose of any matrix
// arrays: a 33x40
// result: a.T
func.func @f(%a: tensor<?x?xf16>) -> tensor<?x?xf16> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = tensor.dim %a, %c0 : tensor<?x?xf16>
  %n = tensor.dim %a, %c1 : tensor<?x?xf16>
  %e = tensor.empty(%n, %m) : tensor<?x?xf16>
  %r = linalg.transpose ins(%a : tensor<?x?xf16>) outs(%e : tensor<?x?xf16>) permutation = [1, 0]
  return %r : tensor<?x?xf16>
}
