// A matrix of bf16 times a vector, in bf16
// arrays: a 33x130, x 130
// result: a @ x
func.func @f(%a: tensor<?x?xbf16>, %x: tensor<?xbf16>) -> tensor<?xbf16> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : bf16
  %m = tensor.dim %a, %c0 : tensor<?x?xbf16>
  %e = tensor.empty(%m) : tensor<?xbf16>
  %f = linalg.fill ins(%zero : bf16) outs(%e : tensor<?xbf16>) -> tensor<?xbf16>
  %r = linalg.matvec ins(%a, %x : tensor<?x?xbf16>, tensor<?xbf16>) outs(%f : tensor<?xbf16>) -> tensor<?xbf16>
  return %r : tensor<?xbf16>
}
