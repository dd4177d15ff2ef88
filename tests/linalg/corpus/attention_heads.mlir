// Attention of several heads: a product of five loops, and one of collapsed batches
// arrays: q 2x2x16x32, k 2x2x16x32, v 2x2x16x32
// result: np.einsum('bhij,bhjd->bhid', np.exp((lambda s: s - s.max(-1, keepdims=True))(np.einsum('bhid,bhjd->bhij', q, k) * 0.17677669)) / np.exp((lambda s: s - s.max(-1, keepdims=True))(np.einsum('bhid,bhjd->bhij', q, k) * 0.17677669)).sum(-1, keepdims=True), v)
#qk = affine_map<(b, h, i, j, d) -> (b, h, i, d)>
#kk = affine_map<(b, h, i, j, d) -> (b, h, j, d)>
#ss = affine_map<(b, h, i, j, d) -> (b, h, i, j)>
module {
  func.func @attn(%q: tensor<2x2x16x32xf16>, %k: tensor<2x2x16x32xf16>, %v: tensor<2x2x16x32xf16>) -> tensor<2x2x16x32xf32> {
    %z = arith.constant 0.0 : f32
    %scale = arith.constant 0.17677669 : f32
    %e = tensor.empty() : tensor<2x2x16x16xf32>
    %f = linalg.fill ins(%z : f32) outs(%e : tensor<2x2x16x16xf32>) -> tensor<2x2x16x16xf32>
    %s = linalg.generic {indexing_maps = [#qk, #kk, #ss], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%q, %k : tensor<2x2x16x32xf16>, tensor<2x2x16x32xf16>) outs(%f : tensor<2x2x16x16xf32>) {
    ^bb0(%a: f16, %b: f16, %o: f32):
      %a32 = arith.extf %a : f16 to f32
      %b32 = arith.extf %b : f16 to f32
      %m = arith.mulf %a32, %b32 : f32
      %t = arith.addf %o, %m : f32
      linalg.yield %t : f32
    } -> tensor<2x2x16x16xf32>
    %id = tensor.empty() : tensor<2x2x16x16xf32>
    %sc = linalg.generic {indexing_maps = [affine_map<(a,b,c,d)->(a,b,c,d)>, affine_map<(a,b,c,d)->(a,b,c,d)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%s : tensor<2x2x16x16xf32>) outs(%id : tensor<2x2x16x16xf32>) {
    ^bb0(%a: f32, %o: f32):
      %m = arith.mulf %a, %scale : f32
      linalg.yield %m : f32
    } -> tensor<2x2x16x16xf32>
    %p = linalg.softmax dimension(3) ins(%sc : tensor<2x2x16x16xf32>) outs(%id : tensor<2x2x16x16xf32>) -> tensor<2x2x16x16xf32>
    %ph = tensor.empty() : tensor<2x2x16x16xf16>
    %pt = linalg.generic {indexing_maps = [affine_map<(a,b,c,d)->(a,b,c,d)>, affine_map<(a,b,c,d)->(a,b,c,d)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%p : tensor<2x2x16x16xf32>) outs(%ph : tensor<2x2x16x16xf16>) {
    ^bb0(%a: f32, %o: f16):
      %m = arith.truncf %a : f32 to f16
      linalg.yield %m : f16
    } -> tensor<2x2x16x16xf16>
    %pc = tensor.collapse_shape %pt [[0, 1], [2], [3]] : tensor<2x2x16x16xf16> into tensor<4x16x16xf16>
    %vc = tensor.collapse_shape %v [[0, 1], [2], [3]] : tensor<2x2x16x32xf16> into tensor<4x16x32xf16>
    %oe = tensor.empty() : tensor<4x16x32xf32>
    %of = linalg.fill ins(%z : f32) outs(%oe : tensor<4x16x32xf32>) -> tensor<4x16x32xf32>
    %o = linalg.batch_matmul ins(%pc, %vc : tensor<4x16x16xf16>, tensor<4x16x32xf16>) outs(%of : tensor<4x16x32xf32>) -> tensor<4x16x32xf32>
    %r = tensor.expand_shape %o [[0, 1], [2], [3]] output_shape [2, 2, 16, 32] : tensor<4x16x32xf32> into tensor<2x2x16x32xf32>
    return %r : tensor<2x2x16x32xf32>
  }
}
