// Bytes without a sign
// arrays: a 32x64, b 64x16
// result: a.astype(np.uint8).astype(np.int64) @ b.astype(np.uint8).astype(np.int64)
func.func @f(%a: tensor<32x64xi8>, %b: tensor<64x16xi8>) -> tensor<32x16xi32> {
  %zero = arith.constant 0 : i32
  %c_e = tensor.empty() : tensor<32x16xi32>
  %c_0 = linalg.fill ins(%zero : i32) outs(%c_e : tensor<32x16xi32>) -> tensor<32x16xi32>
  %c = linalg.matmul {cast = #linalg.type_fn<cast_unsigned>} ins(%a, %b : tensor<32x64xi8>, tensor<64x16xi8>) outs(%c_0 : tensor<32x16xi32>) -> tensor<32x16xi32>
  return %c : tensor<32x16xi32>
}
