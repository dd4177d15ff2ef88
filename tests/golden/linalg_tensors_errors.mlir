// RUN: -p frag-bufferize
#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
#id = affine_map<(m, n) -> (m, n)>
#col = affine_map<(m, n) -> (n)>
#row = affine_map<(m, n) -> (m)>
#col1 = affine_map<(m, n) -> (0, n)>
#row1 = affine_map<(m, n) -> (m, 0)>
#one = affine_map<(m, n) -> (0)>
#none = affine_map<(m, n) -> ()>
// -----
// An empty tensor is read.
func.func @f(%a: tensor<?x?xf16>, %b: tensor<?x?xf16>) -> tensor<?x?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = tensor.dim %a, %c0 : tensor<?x?xf16>
  %n = tensor.dim %b, %c1 : tensor<?x?xf16>
  %e = tensor.empty(%m, %n) : tensor<?x?xf32>
  %d = linalg.generic {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : tensor<?x?xf16>, tensor<?x?xf16>) outs(%e : tensor<?x?xf32>) {
  ^bb0(%x: f16, %y: f16, %s: f32):
    %x1 = arith.extf %x : f16 to f32
    %y1 = arith.extf %y : f16 to f32
    %p = arith.mulf %x1, %y1 : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<?x?xf32>
  func.return %d : tensor<?x?xf32>
}
// -----
// An empty tensor is an input.
func.func @f(%a: tensor<?x?xf16>, %b: tensor<?x?xf16>) -> tensor<?x?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = tensor.dim %a, %c0 : tensor<?x?xf16>
  %n = tensor.dim %b, %c1 : tensor<?x?xf16>
  %e = tensor.empty(%m, %n) : tensor<?x?xf32>
  %d = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%e : tensor<?x?xf32>) outs(%e : tensor<?x?xf32>) {
  ^bb0(%v: f32, %o: f32):
    %0 = arith.negf %v : f32
    linalg.yield %0 : f32
  } -> tensor<?x?xf32>
  func.return %d : tensor<?x?xf32>
}
// -----
// An empty tensor is returned.
func.func @f(%a: tensor<?x?xf16>, %b: tensor<?x?xf16>) -> tensor<?x?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = tensor.dim %a, %c0 : tensor<?x?xf16>
  %n = tensor.dim %b, %c1 : tensor<?x?xf16>
  %d = tensor.empty(%m, %n) : tensor<?x?xf32>
  func.return %d : tensor<?x?xf32>
}
// -----
// A number is returned.
func.func @f(%a: tensor<?x?xf16>, %b: tensor<?x?xf16>, %c: tensor<?x?xf32>, %x: f32) -> f32 {
  func.return %x : f32
}
// -----
// A constant tensor.
func.func @f(%a: tensor<?x?xf16>, %b: tensor<?x?xf16>) -> tensor<64x64xf32> {
  %z = arith.constant dense<0.0> : tensor<64x64xf32>
  %d = linalg.generic {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : tensor<?x?xf16>, tensor<?x?xf16>) outs(%z : tensor<64x64xf32>) {
  ^bb0(%x: f16, %y: f16, %s: f32):
    %x1 = arith.extf %x : f16 to f32
    %y1 = arith.extf %y : f16 to f32
    %p = arith.mulf %x1, %y1 : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<64x64xf32>
  func.return %d : tensor<64x64xf32>
}
// -----
// A tensor without a rank.
func.func @f(%a: tensor<*xf32>) -> tensor<*xf32> {
  func.return %a : tensor<*xf32>
}
// -----
// A tensor with an encoding.
func.func @f(%a: tensor<4xf32, "sparse">) -> tensor<4xf32, "sparse"> {
  func.return %a : tensor<4xf32, "sparse">
}
// -----
// A loop over tensors.
func.func @f(%a: tensor<?x?xf16>, %b: tensor<?x?xf16>, %c: tensor<?x?xf32>, %n: index) -> tensor<?x?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %d = scf.for %i = %c0 to %n step %c1 iter_args(%r = %c) -> (tensor<?x?xf32>) {
    scf.yield %r : tensor<?x?xf32>
  }
  func.return %d : tensor<?x?xf32>
}
// -----
// A declaration.
func.func private @f(tensor<?x?xf32>) -> tensor<?x?xf32>
