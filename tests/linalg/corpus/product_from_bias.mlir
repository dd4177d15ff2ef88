// A product that begins from its bias
// arrays: x 20x24, w 24x16, b 16
// result: x @ w + b
func.func @f(%x: tensor<20x24xf16>, %w: tensor<24x16xf16>, %b: tensor<16xf32>) -> tensor<20x16xf32> {
  %e = tensor.empty() : tensor<20x16xf32>
  %i = linalg.generic {indexing_maps = [affine_map<(i,j)->(j)>, affine_map<(i,j)->(i,j)>], iterator_types = ["parallel", "parallel"]} ins(%b : tensor<16xf32>) outs(%e : tensor<20x16xf32>) {
  ^bb0(%x0: f32, %o: f32):
    linalg.yield %x0 : f32
  } -> tensor<20x16xf32>
  %r = linalg.matmul ins(%x, %w : tensor<20x24xf16>, tensor<24x16xf16>) outs(%i : tensor<20x16xf32>) -> tensor<20x16xf32>
  return %r : tensor<20x16xf32>
}
