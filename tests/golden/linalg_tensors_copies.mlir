// RUN: -p frag-bufferize
// What others still read is copied before it is overwritten, and an argument that is returned as it came.
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
// An argument would be overwritten that is not returned.
func.func @f0(%a: tensor<?x?xf16>, %b: tensor<?x?xf16>, %c: tensor<?x?xf32>, %e: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %sum = linalg.generic {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : tensor<?x?xf16>, tensor<?x?xf16>) outs(%c : tensor<?x?xf32>) {
  ^bb0(%x: f16, %y: f16, %s: f32):
    %x1 = arith.extf %x : f16 to f32
    %y1 = arith.extf %y : f16 to f32
    %p = arith.mulf %x1, %y1 : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<?x?xf32>
  %d = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%sum : tensor<?x?xf32>) outs(%e : tensor<?x?xf32>) {
  ^bb0(%v: f32, %o: f32):
    %0 = arith.negf %v : f32
    linalg.yield %0 : f32
  } -> tensor<?x?xf32>
  func.return %d : tensor<?x?xf32>
}
// The old value is read after the sum has taken its place.
func.func @f1(%a: tensor<?x?xf16>, %b: tensor<?x?xf16>, %c: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %sum = linalg.generic {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : tensor<?x?xf16>, tensor<?x?xf16>) outs(%c : tensor<?x?xf32>) {
  ^bb0(%x: f16, %y: f16, %s: f32):
    %x1 = arith.extf %x : f16 to f32
    %y1 = arith.extf %y : f16 to f32
    %p = arith.mulf %x1, %y1 : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<?x?xf32>
  %d = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%sum : tensor<?x?xf32>) outs(%c : tensor<?x?xf32>) {
  ^bb0(%v: f32, %o: f32):
    %0 = arith.addf %v, %o : f32
    linalg.yield %0 : f32
  } -> tensor<?x?xf32>
  func.return %d : tensor<?x?xf32>
}
// The start of the sum is read later too.
func.func @f2(%a: tensor<?x?xf16>, %b: tensor<?x?xf16>, %c: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %sum = linalg.generic {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : tensor<?x?xf16>, tensor<?x?xf16>) outs(%c : tensor<?x?xf32>) {
  ^bb0(%x: f16, %y: f16, %s: f32):
    %x1 = arith.extf %x : f16 to f32
    %y1 = arith.extf %y : f16 to f32
    %p = arith.mulf %x1, %y1 : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<?x?xf32>
  %d = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%sum, %c : tensor<?x?xf32>, tensor<?x?xf32>) outs(%c : tensor<?x?xf32>) {
  ^bb0(%v: f32, %w: f32, %o: f32):
    %0 = arith.addf %v, %w : f32
    linalg.yield %0 : f32
  } -> tensor<?x?xf32>
  func.return %d : tensor<?x?xf32>
}
// A product in place of its own input.
func.func @f3(%a: tensor<?x?xf64>, %b: tensor<?x?xf64>) -> tensor<?x?xf64> {
  %d = linalg.matmul ins(%a, %b : tensor<?x?xf64>, tensor<?x?xf64>) outs(%a : tensor<?x?xf64>) -> tensor<?x?xf64>
  func.return %d : tensor<?x?xf64>
}
// An argument is returned as it came.
func.func @as_it_came(%a: tensor<?x?xf16>, %b: tensor<?x?xf16>, %c: tensor<?x?xf32>) -> tensor<?x?xf32> {
  func.return %c : tensor<?x?xf32>
}
// A tensor is returned twice.
func.func @twice(%a: tensor<?x?xf16>, %b: tensor<?x?xf16>, %c: tensor<?x?xf32>) -> (tensor<?x?xf32>, tensor<?x?xf32>) {
  %d = linalg.generic {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : tensor<?x?xf16>, tensor<?x?xf16>) outs(%c : tensor<?x?xf32>) {
  ^bb0(%x: f16, %y: f16, %s: f32):
    %x1 = arith.extf %x : f16 to f32
    %y1 = arith.extf %y : f16 to f32
    %p = arith.mulf %x1, %y1 : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<?x?xf32>
  func.return %d, %d : tensor<?x?xf32>, tensor<?x?xf32>
}
// The result starts from an argument that is still needed.
func.func @f6(%a: tensor<?x?xf16>, %b: tensor<?x?xf16>, %c: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %zero = arith.constant 0.0 : f32
  %f = linalg.fill ins(%zero : f32) outs(%c : tensor<?x?xf32>) -> tensor<?x?xf32>
  %sum = linalg.generic {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : tensor<?x?xf16>, tensor<?x?xf16>) outs(%f : tensor<?x?xf32>) {
  ^bb0(%x: f16, %y: f16, %s: f32):
    %x1 = arith.extf %x : f16 to f32
    %y1 = arith.extf %y : f16 to f32
    %p = arith.mulf %x1, %y1 : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<?x?xf32>
  %d = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%c : tensor<?x?xf32>) outs(%sum : tensor<?x?xf32>) {
  ^bb0(%v: f32, %o: f32):
    %0 = arith.addf %v, %o : f32
    linalg.yield %0 : f32
  } -> tensor<?x?xf32>
  func.return %d : tensor<?x?xf32>
}
// A tensor whose type says less.
func.func @f7(%a: tensor<?x?xf16>, %b: tensor<?x?xf16>, %c: tensor<?x?xf32>) -> tensor<64x?xf32> {
  %d = tensor.cast %c : tensor<?x?xf32> to tensor<64x?xf32>
  func.return %d : tensor<64x?xf32>
}
