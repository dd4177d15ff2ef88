// A matrix to one number
// arrays: a 33x300
// result: a.sum()
func.func @f(%a: tensor<33x300xi32>) -> tensor<i32> {
  %init = arith.constant 0 : i32
  %e = tensor.empty() : tensor<i32>
  %s = linalg.fill ins(%init : i32) outs(%e : tensor<i32>) -> tensor<i32>
  %r = linalg.reduce { arith.addi } ins(%a : tensor<33x300xi32>) outs(%s : tensor<i32>) dimensions = [0, 1]
  return %r : tensor<i32>
}
