// Every second row, every third column
// arrays: x 10x12
// result: np.exp(x[::2, 1::3])
func.func @f(%x: tensor<10x12xf32>) -> tensor<5x4xf32> {
  %s = tensor.extract_slice %x[0, 1] [5, 4] [2, 3] : tensor<10x12xf32> to tensor<5x4xf32>
  %e = tensor.empty() : tensor<5x4xf32>
  %r = linalg.exp ins(%s : tensor<5x4xf32>) outs(%e : tensor<5x4xf32>) -> tensor<5x4xf32>
  return %r : tensor<5x4xf32>
}
