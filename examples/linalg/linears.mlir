// Three layers of torch.nn.Linear with ReLU between them, for any number of rows: each weight is transposed, as
// torch stores it, and each product has its bias and ReLU behind it.
//
//   fragir run examples/linalg/linears.mlir --size n=50

#id = affine_map<(i, j) -> (i, j)>
#column = affine_map<(i, j) -> (j)>

func.func @linears(
    %x: tensor<?x64xf16> {frag.sizes = ["n", "k"]},
    %w1: tensor<96x64xf16>, %b1: tensor<96xf16>, %w2: tensor<48x96xf16>, %b2: tensor<48xf16>,
    %w3: tensor<10x48xf16>, %b3: tensor<10xf16>)
    -> tensor<?x10xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x64xf16>
  %zero = arith.constant 0.0 : f32
  %w1_e = tensor.empty() : tensor<64x96xf16>
  %w1_t = linalg.transpose ins(%w1 : tensor<96x64xf16>) outs(%w1_e : tensor<64x96xf16>) permutation = [1, 0]
  %p1_e = tensor.empty(%n) : tensor<?x96xf32>
  %p1_0 = linalg.fill ins(%zero : f32) outs(%p1_e : tensor<?x96xf32>) -> tensor<?x96xf32>
  %p1 = linalg.matmul ins(%x, %w1_t : tensor<?x64xf16>, tensor<64x96xf16>)
      outs(%p1_0 : tensor<?x96xf32>) -> tensor<?x96xf32>
  %h1_e = tensor.empty(%n) : tensor<?x96xf16>
  %h1 = linalg.generic {indexing_maps = [#id, #column, #id],
      iterator_types = ["parallel", "parallel"]}
      ins(%p1, %b1 : tensor<?x96xf32>, tensor<96xf16>) outs(%h1_e : tensor<?x96xf16>) {
  ^bb0(%sum: f32, %b: f16, %old: f16):
    %bias = arith.extf %b : f16 to f32
    %s = arith.addf %sum, %bias : f32
    %r = arith.maximumf %s, %zero : f32
    %h = arith.truncf %r : f32 to f16
    linalg.yield %h : f16
  } -> tensor<?x96xf16>
  %w2_e = tensor.empty() : tensor<96x48xf16>
  %w2_t = linalg.transpose ins(%w2 : tensor<48x96xf16>) outs(%w2_e : tensor<96x48xf16>) permutation = [1, 0]
  %p2_e = tensor.empty(%n) : tensor<?x48xf32>
  %p2_0 = linalg.fill ins(%zero : f32) outs(%p2_e : tensor<?x48xf32>) -> tensor<?x48xf32>
  %p2 = linalg.matmul ins(%h1, %w2_t : tensor<?x96xf16>, tensor<96x48xf16>)
      outs(%p2_0 : tensor<?x48xf32>) -> tensor<?x48xf32>
  %h2_e = tensor.empty(%n) : tensor<?x48xf16>
  %h2 = linalg.generic {indexing_maps = [#id, #column, #id],
      iterator_types = ["parallel", "parallel"]}
      ins(%p2, %b2 : tensor<?x48xf32>, tensor<48xf16>) outs(%h2_e : tensor<?x48xf16>) {
  ^bb0(%sum: f32, %b: f16, %old: f16):
    %bias = arith.extf %b : f16 to f32
    %s = arith.addf %sum, %bias : f32
    %r = arith.maximumf %s, %zero : f32
    %h = arith.truncf %r : f32 to f16
    linalg.yield %h : f16
  } -> tensor<?x48xf16>
  %w3_e = tensor.empty() : tensor<48x10xf16>
  %w3_t = linalg.transpose ins(%w3 : tensor<10x48xf16>) outs(%w3_e : tensor<48x10xf16>) permutation = [1, 0]
  %p3_e = tensor.empty(%n) : tensor<?x10xf32>
  %p3_0 = linalg.fill ins(%zero : f32) outs(%p3_e : tensor<?x10xf32>) -> tensor<?x10xf32>
  %p3 = linalg.matmul ins(%h2, %w3_t : tensor<?x48xf16>, tensor<48x10xf16>)
      outs(%p3_0 : tensor<?x10xf32>) -> tensor<?x10xf32>
  %y_e = tensor.empty(%n) : tensor<?x10xf32>
  %y = linalg.generic {indexing_maps = [#id, #column, #id],
      iterator_types = ["parallel", "parallel"]}
      ins(%p3, %b3 : tensor<?x10xf32>, tensor<10xf16>) outs(%y_e : tensor<?x10xf32>) {
  ^bb0(%sum: f32, %b: f16, %old: f32):
    %bias = arith.extf %b : f16 to f32
    %s = arith.addf %sum, %bias : f32
    linalg.yield %s : f32
  } -> tensor<?x10xf32>
  func.return %y : tensor<?x10xf32>
}
