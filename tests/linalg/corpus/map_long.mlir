// linalg.map with a region
// arrays: a 33x40, b 33x40
// result: a * b - a
func.func @f(%a: tensor<33x40xf32>, %b: tensor<33x40xf32>) -> tensor<33x40xf32> {
  %e = tensor.empty() : tensor<33x40xf32>
  %r = linalg.map ins(%a, %b : tensor<33x40xf32>, tensor<33x40xf32>) outs(%e : tensor<33x40xf32>)
    (%x: f32, %y: f32) {
      %p = arith.mulf %x, %y : f32
      %s = arith.subf %p, %x : f32
      linalg.yield %s : f32
    }
  return %r : tensor<33x40xf32>
}
