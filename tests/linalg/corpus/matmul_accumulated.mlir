// A product onto what its output holds
// arrays: a 33x40, b 40x24, c 33x24
// result: c + a @ b
func.func @f(%a: tensor<33x40xf16>, %b: tensor<40x24xf16>, %c: tensor<33x24xf32>) -> tensor<33x24xf32> {
  %r = linalg.matmul ins(%a, %b : tensor<33x40xf16>, tensor<40x24xf16>) outs(%c : tensor<33x24xf32>) -> tensor<33x24xf32>
  return %r : tensor<33x24xf32>
}
