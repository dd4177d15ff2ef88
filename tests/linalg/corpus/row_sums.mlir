// linalg.reduce with a region
// arrays: a 33x300
// result: a.sum(1)
func.func @f(%a: tensor<33x300xf32>) -> tensor<33xf32> {
  %init = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<33xf32>
  %s = linalg.fill ins(%init : f32) outs(%e : tensor<33xf32>) -> tensor<33xf32>
  %r = linalg.reduce ins(%a : tensor<33x300xf32>) outs(%s : tensor<33xf32>) dimensions = [1]
    (%x: f32, %acc: f32) {
      %t = arith.addf %acc, %x : f32
      linalg.yield %t : f32
    }
  return %r : tensor<33xf32>
}
