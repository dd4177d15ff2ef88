// A product of halves summed in halves
// arrays: a 16x32, b 32x16
// result: a @ b
func.func @f(%a: tensor<16x32xf16>, %b: tensor<32x16xf16>) -> tensor<16x16xf16> {
  %zero = arith.constant 0.0 : f16
  %c_e = tensor.empty() : tensor<16x16xf16>
  %c_0 = linalg.fill ins(%zero : f16) outs(%c_e : tensor<16x16xf16>) -> tensor<16x16xf16>
  %c = linalg.matmul ins(%a, %b : tensor<16x32xf16>, tensor<32x16xf16>) outs(%c_0 : tensor<16x16xf16>) -> tensor<16x16xf16>
  return %c : tensor<16x16xf16>
}
