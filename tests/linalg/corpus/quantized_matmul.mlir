// Bytes with zero points
// arrays: a 16x32, b 32x16
// result: (a - 3) @ (b + 2)
func.func @f(%a: tensor<16x32xi8>, %b: tensor<32x16xi8>) -> tensor<16x16xi32> {
  %zero = arith.constant 0 : i32
  %za = arith.constant 3 : i32
  %zb = arith.constant -2 : i32
  %e = tensor.empty() : tensor<16x16xi32>
  %s = linalg.fill ins(%zero : i32) outs(%e : tensor<16x16xi32>) -> tensor<16x16xi32>
  %c = linalg.quantized_matmul ins(%a, %b, %za, %zb : tensor<16x32xi8>, tensor<32x16xi8>, i32, i32)
      outs(%s : tensor<16x16xi32>) -> tensor<16x16xi32>
  return %c : tensor<16x16xi32>
}
