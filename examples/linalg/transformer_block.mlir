// A transformer's block as torch-mlir prints one: RMS norm, causal attention with two heads, residual, RMS norm,
// an MLP with SiLU, residual. Operands of products are f16, sums and the residual f32.
//
//   fragir compile examples/linalg/transformer_block.mlir --target sm_80 --to ptx
//
// examples/linalg/transformer_block.py runs it.

#id2 = affine_map<(i, j) -> (i, j)>
#id3 = affine_map<(h, i, j) -> (h, i, j)>
#row = affine_map<(i, j) -> (i)>
#column = affine_map<(i, j) -> (j)>

func.func @transformer_block(
    %x: tensor<48x64xf32>, %g1: tensor<64xf32>, %g2: tensor<64xf32>,
    %wq: tensor<64x64xf16>, %wk: tensor<64x64xf16>, %wv: tensor<64x64xf16>,
    %wo: tensor<64x64xf16>, %w1: tensor<64x128xf16>, %w2: tensor<128x64xf16>)
    -> tensor<48x64xf32> {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %eps = arith.constant 1.0e-5 : f32
  %width = arith.constant 64.0 : f32
  %factor = arith.constant 0.17677669 : f32
  %lowest = arith.constant 0xFF800000 : f32
  %n1_squares_e = tensor.empty() : tensor<48xf32>
  %n1_squares_0 = linalg.fill ins(%zero : f32) outs(%n1_squares_e : tensor<48xf32>) -> tensor<48xf32>
  %n1_squares = linalg.generic {indexing_maps = [#id2, #row],
      iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<48x64xf32>) outs(%n1_squares_0 : tensor<48xf32>) {
  ^bb0(%a: f32, %sum: f32):
    %square = arith.mulf %a, %a : f32
    %s = arith.addf %sum, %square : f32
    linalg.yield %s : f32
  } -> tensor<48xf32>
  %n1_e = tensor.empty() : tensor<48x64xf16>
  %n1 = linalg.generic {indexing_maps = [#id2, #row, #column, #id2],
      iterator_types = ["parallel", "parallel"]}
      ins(%x, %n1_squares, %g1 : tensor<48x64xf32>, tensor<48xf32>, tensor<64xf32>) outs(%n1_e : tensor<48x64xf16>) {
  ^bb0(%a: f32, %sum: f32, %gain: f32, %old: f16):
    %mean = arith.divf %sum, %width : f32
    %more = arith.addf %mean, %eps : f32
    %scale = math.rsqrt %more : f32
    %n = arith.mulf %a, %scale : f32
    %y = arith.mulf %n, %gain : f32
    %h = arith.truncf %y : f32 to f16
    linalg.yield %h : f16
  } -> tensor<48x64xf16>
  %q_sums_e = tensor.empty() : tensor<48x64xf32>
  %q_sums_0 = linalg.fill ins(%zero : f32) outs(%q_sums_e : tensor<48x64xf32>) -> tensor<48x64xf32>
  %q_sums = linalg.matmul ins(%n1, %wq : tensor<48x64xf16>, tensor<64x64xf16>)
      outs(%q_sums_0 : tensor<48x64xf32>) -> tensor<48x64xf32>
  %q_all_e = tensor.empty() : tensor<48x64xf16>
  %q_all = linalg.generic {indexing_maps = [#id2, #id2],
      iterator_types = ["parallel", "parallel"]}
      ins(%q_sums : tensor<48x64xf32>) outs(%q_all_e : tensor<48x64xf16>) {
  ^bb0(%a: f32, %old: f16):
    %h = arith.truncf %a : f32 to f16
    linalg.yield %h : f16
  } -> tensor<48x64xf16>
  %q_heads = tensor.expand_shape %q_all [[0], [1, 2]] output_shape [48, 2, 32] : tensor<48x64xf16> into tensor<48x2x32xf16>
  %q_e = tensor.empty() : tensor<2x48x32xf16>
  %q = linalg.transpose ins(%q_heads : tensor<48x2x32xf16>)
      outs(%q_e : tensor<2x48x32xf16>) permutation = [1, 0, 2]
  %k_sums_e = tensor.empty() : tensor<48x64xf32>
  %k_sums_0 = linalg.fill ins(%zero : f32) outs(%k_sums_e : tensor<48x64xf32>) -> tensor<48x64xf32>
  %k_sums = linalg.matmul ins(%n1, %wk : tensor<48x64xf16>, tensor<64x64xf16>)
      outs(%k_sums_0 : tensor<48x64xf32>) -> tensor<48x64xf32>
  %k_all_e = tensor.empty() : tensor<48x64xf16>
  %k_all = linalg.generic {indexing_maps = [#id2, #id2],
      iterator_types = ["parallel", "parallel"]}
      ins(%k_sums : tensor<48x64xf32>) outs(%k_all_e : tensor<48x64xf16>) {
  ^bb0(%a: f32, %old: f16):
    %h = arith.truncf %a : f32 to f16
    linalg.yield %h : f16
  } -> tensor<48x64xf16>
  %k_heads = tensor.expand_shape %k_all [[0], [1, 2]] output_shape [48, 2, 32] : tensor<48x64xf16> into tensor<48x2x32xf16>
  %k_e = tensor.empty() : tensor<2x48x32xf16>
  %k = linalg.transpose ins(%k_heads : tensor<48x2x32xf16>)
      outs(%k_e : tensor<2x48x32xf16>) permutation = [1, 0, 2]
  %v_sums_e = tensor.empty() : tensor<48x64xf32>
  %v_sums_0 = linalg.fill ins(%zero : f32) outs(%v_sums_e : tensor<48x64xf32>) -> tensor<48x64xf32>
  %v_sums = linalg.matmul ins(%n1, %wv : tensor<48x64xf16>, tensor<64x64xf16>)
      outs(%v_sums_0 : tensor<48x64xf32>) -> tensor<48x64xf32>
  %v_all_e = tensor.empty() : tensor<48x64xf16>
  %v_all = linalg.generic {indexing_maps = [#id2, #id2],
      iterator_types = ["parallel", "parallel"]}
      ins(%v_sums : tensor<48x64xf32>) outs(%v_all_e : tensor<48x64xf16>) {
  ^bb0(%a: f32, %old: f16):
    %h = arith.truncf %a : f32 to f16
    linalg.yield %h : f16
  } -> tensor<48x64xf16>
  %v_heads = tensor.expand_shape %v_all [[0], [1, 2]] output_shape [48, 2, 32] : tensor<48x64xf16> into tensor<48x2x32xf16>
  %v_e = tensor.empty() : tensor<2x48x32xf16>
  %v = linalg.transpose ins(%v_heads : tensor<48x2x32xf16>)
      outs(%v_e : tensor<2x48x32xf16>) permutation = [1, 0, 2]
  %scores_e = tensor.empty() : tensor<2x48x48xf32>
  %scores_0 = linalg.fill ins(%zero : f32) outs(%scores_e : tensor<2x48x48xf32>) -> tensor<2x48x48xf32>
  %scores = linalg.batch_matmul_transpose_b ins(%q, %k : tensor<2x48x32xf16>, tensor<2x48x32xf16>)
      outs(%scores_0 : tensor<2x48x48xf32>) -> tensor<2x48x48xf32>
  %masked_e = tensor.empty() : tensor<2x48x48xf32>
  %masked = linalg.generic {indexing_maps = [#id3, #id3],
      iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%scores : tensor<2x48x48xf32>) outs(%masked_e : tensor<2x48x48xf32>) {
  ^bb0(%a: f32, %old: f32):
    %scaled = arith.mulf %a, %factor : f32
    %i = linalg.index 1 : index
    %j = linalg.index 2 : index
    %seen = arith.cmpi sge, %i, %j : index
    %s = arith.select %seen, %scaled, %lowest : f32
    linalg.yield %s : f32
  } -> tensor<2x48x48xf32>
  %shares_e = tensor.empty() : tensor<2x48x48xf32>
  %shares = linalg.softmax dimension(2) ins(%masked : tensor<2x48x48xf32>) outs(%shares_e : tensor<2x48x48xf32>) -> tensor<2x48x48xf32>
  %weights_e = tensor.empty() : tensor<2x48x48xf16>
  %weights = linalg.generic {indexing_maps = [#id3, #id3],
      iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%shares : tensor<2x48x48xf32>) outs(%weights_e : tensor<2x48x48xf16>) {
  ^bb0(%a: f32, %old: f16):
    %h = arith.truncf %a : f32 to f16
    linalg.yield %h : f16
  } -> tensor<2x48x48xf16>
  %mixed_e = tensor.empty() : tensor<2x48x32xf32>
  %mixed_0 = linalg.fill ins(%zero : f32) outs(%mixed_e : tensor<2x48x32xf32>) -> tensor<2x48x32xf32>
  %mixed = linalg.batch_matmul ins(%weights, %v : tensor<2x48x48xf16>, tensor<2x48x32xf16>)
      outs(%mixed_0 : tensor<2x48x32xf32>) -> tensor<2x48x32xf32>
  %mixed_half_e = tensor.empty() : tensor<2x48x32xf16>
  %mixed_half = linalg.generic {indexing_maps = [#id3, #id3],
      iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%mixed : tensor<2x48x32xf32>) outs(%mixed_half_e : tensor<2x48x32xf16>) {
  ^bb0(%a: f32, %old: f16):
    %h = arith.truncf %a : f32 to f16
    linalg.yield %h : f16
  } -> tensor<2x48x32xf16>
  %heads_e = tensor.empty() : tensor<48x2x32xf16>
  %heads = linalg.transpose ins(%mixed_half : tensor<2x48x32xf16>)
      outs(%heads_e : tensor<48x2x32xf16>) permutation = [1, 0, 2]
  %joined = tensor.collapse_shape %heads [[0], [1, 2]] : tensor<48x2x32xf16> into tensor<48x64xf16>
  %attended_e = tensor.empty() : tensor<48x64xf32>
  %attended_0 = linalg.fill ins(%zero : f32) outs(%attended_e : tensor<48x64xf32>) -> tensor<48x64xf32>
  %attended = linalg.matmul ins(%joined, %wo : tensor<48x64xf16>, tensor<64x64xf16>)
      outs(%attended_0 : tensor<48x64xf32>) -> tensor<48x64xf32>
  %x1_e = tensor.empty() : tensor<48x64xf32>
  %x1 = linalg.add ins(%attended, %x : tensor<48x64xf32>, tensor<48x64xf32>)
      outs(%x1_e : tensor<48x64xf32>) -> tensor<48x64xf32>
  %n2_squares_e = tensor.empty() : tensor<48xf32>
  %n2_squares_0 = linalg.fill ins(%zero : f32) outs(%n2_squares_e : tensor<48xf32>) -> tensor<48xf32>
  %n2_squares = linalg.generic {indexing_maps = [#id2, #row],
      iterator_types = ["parallel", "reduction"]}
      ins(%x1 : tensor<48x64xf32>) outs(%n2_squares_0 : tensor<48xf32>) {
  ^bb0(%a: f32, %sum: f32):
    %square = arith.mulf %a, %a : f32
    %s = arith.addf %sum, %square : f32
    linalg.yield %s : f32
  } -> tensor<48xf32>
  %n2_e = tensor.empty() : tensor<48x64xf16>
  %n2 = linalg.generic {indexing_maps = [#id2, #row, #column, #id2],
      iterator_types = ["parallel", "parallel"]}
      ins(%x1, %n2_squares, %g2 : tensor<48x64xf32>, tensor<48xf32>, tensor<64xf32>) outs(%n2_e : tensor<48x64xf16>) {
  ^bb0(%a: f32, %sum: f32, %gain: f32, %old: f16):
    %mean = arith.divf %sum, %width : f32
    %more = arith.addf %mean, %eps : f32
    %scale = math.rsqrt %more : f32
    %n = arith.mulf %a, %scale : f32
    %y = arith.mulf %n, %gain : f32
    %h = arith.truncf %y : f32 to f16
    linalg.yield %h : f16
  } -> tensor<48x64xf16>
  %up_e = tensor.empty() : tensor<48x128xf32>
  %up_0 = linalg.fill ins(%zero : f32) outs(%up_e : tensor<48x128xf32>) -> tensor<48x128xf32>
  %up = linalg.matmul ins(%n2, %w1 : tensor<48x64xf16>, tensor<64x128xf16>)
      outs(%up_0 : tensor<48x128xf32>) -> tensor<48x128xf32>
  %hidden_e = tensor.empty() : tensor<48x128xf16>
  %hidden = linalg.generic {indexing_maps = [#id2, #id2],
      iterator_types = ["parallel", "parallel"]}
      ins(%up : tensor<48x128xf32>) outs(%hidden_e : tensor<48x128xf16>) {
  ^bb0(%a: f32, %old: f16):
    %minus = arith.negf %a : f32
    %power = math.exp %minus : f32
    %below = arith.addf %one, %power : f32
    %silu = arith.divf %a, %below : f32
    %h = arith.truncf %silu : f32 to f16
    linalg.yield %h : f16
  } -> tensor<48x128xf16>
  %down_e = tensor.empty() : tensor<48x64xf32>
  %down_0 = linalg.fill ins(%zero : f32) outs(%down_e : tensor<48x64xf32>) -> tensor<48x64xf32>
  %down = linalg.matmul ins(%hidden, %w2 : tensor<48x128xf16>, tensor<128x64xf16>)
      outs(%down_0 : tensor<48x64xf32>) -> tensor<48x64xf32>
  %y_e = tensor.empty() : tensor<48x64xf32>
  %y = linalg.add ins(%down, %x1 : tensor<48x64xf32>, tensor<48x64xf32>)
      outs(%y_e : tensor<48x64xf32>) -> tensor<48x64xf32>
  func.return %y : tensor<48x64xf32>
}
