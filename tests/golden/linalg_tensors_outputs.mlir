// RUN: -p frag-bufferize
#id = affine_map<(m, n) -> (m, n)>
// Two results that start from one argument: the second has memory of its own.
func.func @two(%a: tensor<4x8xf32>, %c: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  %e = tensor.empty() : tensor<4x8xf32>
  %p, %q, %r = linalg.generic {indexing_maps = [#id, #id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%a : tensor<4x8xf32>) outs(%c, %c, %e : tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>) {
  ^bb0(%v: f32, %o: f32, %s: f32, %t: f32):
    %n = arith.negf %v : f32
    linalg.yield %v, %n, %v : f32, f32, f32
  } -> tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>
  func.return %p, %r : tensor<4x8xf32>, tensor<4x8xf32>
}
// The first of two functions is no longer one of tensors; names and attributes stay.
func.func @named(%left: tensor<4x8xf64> {frag.sizes = ["p", "q"]}, %right: tensor<8x4xf64>, %sum: tensor<4x4xf64>, %scale: f64) -> tensor<4x4xf64> {
  %0 = linalg.matmul ins(%left, %right : tensor<4x8xf64>, tensor<8x4xf64>) outs(%sum : tensor<4x4xf64>) -> tensor<4x4xf64>
  %1 = linalg.mul ins(%0, %0 : tensor<4x4xf64>, tensor<4x4xf64>) outs(%0 : tensor<4x4xf64>) -> tensor<4x4xf64>
  func.return %1 : tensor<4x4xf64>
}
