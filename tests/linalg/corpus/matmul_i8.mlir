// Signed bytes summed in i32
// arrays: a 33x64, b 64x17
// result: a @ b
func.func @f(%a: tensor<33x64xi8>, %b: tensor<64x17xi8>) -> tensor<33x17xi32> {
  %zero = arith.constant 0 : i32
  %c_e = tensor.empty() : tensor<33x17xi32>
  %c_0 = linalg.fill ins(%zero : i32) outs(%c_e : tensor<33x17xi32>) -> tensor<33x17xi32>
  %c = linalg.matmul ins(%a, %b : tensor<33x64xi8>, tensor<64x17xi8>) outs(%c_0 : tensor<33x17xi32>) -> tensor<33x17xi32>
  return %c : tensor<33x17xi32>
}
