// Rows of sizes that a launch knows
// arrays: a 33x300
// result: a.max(1)
func.func @f(%a: tensor<?x?xf32>) -> tensor<?xf32> {
  %init = arith.constant 0xFF800000 : f32
  %c0 = arith.constant 0 : index
  %m = tensor.dim %a, %c0 : tensor<?x?xf32>
  %e = tensor.empty(%m) : tensor<?xf32>
  %s = linalg.fill ins(%init : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %r = linalg.reduce { arith.maximumf } ins(%a : tensor<?x?xf32>) outs(%s : tensor<?xf32>) dimensions = [1]
  return %r : tensor<?xf32>
}
