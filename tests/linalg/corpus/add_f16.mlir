// Two operands
// arrays: a 33x40, b 33x40
// result: a + b
func.func @f(%a: tensor<33x40xf16>, %b: tensor<33x40xf16>) -> tensor<33x40xf16> {
  %e = tensor.empty() : tensor<33x40xf16>
  %r = linalg.add ins(%a, %b : tensor<33x40xf16>, tensor<33x40xf16>) outs(%e : tensor<33x40xf16>) -> tensor<33x40xf16>
  return %r : tensor<33x40xf16>
}
