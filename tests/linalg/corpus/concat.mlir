// Halves swapped: rotary's other half
// arrays: a 17x64
// result: np.concatenate([-a[:, 32:], a[:, :32]], 1)
func.func @f(%a: tensor<17x64xf32>) -> tensor<17x64xf32> {
  %l = tensor.extract_slice %a[0, 0] [17, 32] [1, 1] : tensor<17x64xf32> to tensor<17x32xf32>
  %h = tensor.extract_slice %a[0, 32] [17, 32] [1, 1] : tensor<17x64xf32> to tensor<17x32xf32>
  %e = tensor.empty() : tensor<17x32xf32>
  %n = linalg.negf ins(%h : tensor<17x32xf32>) outs(%e : tensor<17x32xf32>) -> tensor<17x32xf32>
  %r = tensor.concat dim(1) %n, %l : (tensor<17x32xf32>, tensor<17x32xf32>) -> tensor<17x64xf32>
  return %r : tensor<17x64xf32>
}
