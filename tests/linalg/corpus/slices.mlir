// A part computed and put back
// arrays: a 33x40
// result: np.block([[a[:16], ], [np.hstack([a[16:, :8], np.exp(a[16:, 8:])])]])
func.func @f(%a: tensor<33x40xf32>) -> tensor<33x40xf32> {
  %p = tensor.extract_slice %a[16, 8] [17, 32] [1, 1] : tensor<33x40xf32> to tensor<17x32xf32>
  %e = tensor.empty() : tensor<17x32xf32>
  %x = linalg.exp ins(%p : tensor<17x32xf32>) outs(%e : tensor<17x32xf32>) -> tensor<17x32xf32>
  %r = tensor.insert_slice %x into %a[16, 8] [17, 32] [1, 1] : tensor<17x32xf32> into tensor<33x40xf32>
  return %r : tensor<33x40xf32>
}
