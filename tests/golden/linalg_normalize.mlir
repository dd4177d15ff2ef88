// RUN: -p linalg-normalize
// Named operations as generics; transposes read through; softmax; truth values as bytes.

func.func @named(%a: memref<8x4xf16>, %b: memref<8x6xf16>, %c: memref<4x6xf32>) {
  linalg.matmul_transpose_a ins(%a, %b : memref<8x4xf16>, memref<8x6xf16>) outs(%c : memref<4x6xf32>)
  func.return
}
// -----
func.func @through(%a: tensor<8x4xf32>, %v: tensor<4xf32>) -> tensor<4x8xf32> {
  %e = tensor.empty() : tensor<4x8xf32>
  %t = linalg.transpose ins(%a : tensor<8x4xf32>) outs(%e : tensor<4x8xf32>) permutation = [1, 0]
  %w = linalg.broadcast ins(%v : tensor<4xf32>) outs(%e : tensor<4x8xf32>) dimensions = [1]
  %r = linalg.add ins(%t, %w : tensor<4x8xf32>, tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) -> tensor<4x8xf32>
  func.return %r : tensor<4x8xf32>
}
// -----
func.func @softmax(%a: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %e = tensor.empty() : tensor<4x8xf32>
  %r = linalg.softmax dimension(1) ins(%a : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) -> tensor<4x8xf32>
  func.return %r : tensor<4x8xf32>
}
// -----
// Logic on what is read is logic on bytes.
func.func @truth(%p: memref<4x8xi1>, %x: memref<4x8xf32>, %o: memref<4xi1>) {
  %false = arith.constant false
  linalg.fill ins(%false : i1) outs(%o : memref<4xi1>)
  linalg.reduce { arith.ori } ins(%p : memref<4x8xi1>) outs(%o : memref<4xi1>) dimensions = [1]
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%p : memref<4x8xi1>) outs(%x : memref<4x8xf32>) {
  ^bb0(%a: i1, %old: f32):
    %zero = arith.constant 0.0 : f32
    %kept = arith.select %a, %old, %zero : f32
    linalg.yield %kept : f32
  }
  func.return
}
// -----
func.func @not(%q: tensor<4x8xi1>) -> tensor<4x8xi1> {
  %e = tensor.empty() : tensor<4x8xi1>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%q : tensor<4x8xi1>) outs(%e : tensor<4x8xi1>) {
  ^bb0(%a: i1, %old: i1):
    %true = arith.constant true
    %not = arith.xori %a, %true : i1
    linalg.yield %not : i1
  } -> tensor<4x8xi1>
  func.return %r : tensor<4x8xi1>
}
// -----
// Padding, a table, one element, joined tensors.
func.func @pad(%a: tensor<4x8xf32>, %x: f32) -> tensor<6x8xf32> {
  %p = tensor.pad %a low[2, 0] high[0, 0] {
  ^bb0(%i: index, %j: index):
    tensor.yield %x : f32
  } : tensor<4x8xf32> to tensor<6x8xf32>
  func.return %p : tensor<6x8xf32>
}
// -----
func.func @pad_open(%a: tensor<?x8xf32>, %x: f32) -> tensor<?x8xf32> {
  %p = tensor.pad %a low[2, 0] high[0, 0] {
  ^bb0(%i: index, %j: index):
    tensor.yield %x : f32
  } : tensor<?x8xf32> to tensor<?x8xf32>
  func.return %p : tensor<?x8xf32>
}
// -----
func.func @joined(%a: tensor<4x8xf32>, %b: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %t = arith.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %c0 = arith.constant 0 : index
  %one = tensor.extract %t[%c0] : tensor<2xf32>
  %s = tensor.splat %one : tensor<3x8xf32>
  %o = tensor.concat dim(0) %a, %s, %b : (tensor<4x8xf32>, tensor<3x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  func.return %o : tensor<?x8xf32>
}
