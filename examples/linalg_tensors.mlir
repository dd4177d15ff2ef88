// C = relu(A B + beta C) on tensors of bytes and i32. The result is computed in place of %c, from
// which its `outs` starts; the sum starts from a tensor.empty and disappears.
//
//   fragir-opt examples/linalg_tensors.mlir -p frag-bufferize
//   fragir run examples/linalg_tensors.mlir --size m=70,n=50,k=77
#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
#whole = affine_map<(m, n) -> (m, n)>

func.func @update(%a: tensor<?x?xi8>, %b: tensor<?x?xi8>,
                  %c: tensor<?x?xi32> {frag.sizes = ["m", "n"]}, %beta: i32) -> tensor<?x?xi32> {
  %zero = arith.constant 0 : i32
  %i0 = arith.constant 0 : index
  %i1 = arith.constant 1 : index
  %m = tensor.dim %c, %i0 : tensor<?x?xi32>
  %n = tensor.dim %c, %i1 : tensor<?x?xi32>
  %empty = tensor.empty(%m, %n) : tensor<?x?xi32>
  %start = linalg.fill ins(%zero : i32) outs(%empty : tensor<?x?xi32>) -> tensor<?x?xi32>
  %sum = linalg.generic {indexing_maps = [#mk, #kn, #mn],
                         iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : tensor<?x?xi8>, tensor<?x?xi8>) outs(%start : tensor<?x?xi32>) {
  ^bb0(%x: i8, %y: i8, %s: i32):
    %x1 = arith.extsi %x : i8 to i32
    %y1 = arith.extsi %y : i8 to i32
    %p = arith.muli %x1, %y1 : i32
    %t = arith.addi %s, %p : i32
    linalg.yield %t : i32
  } -> tensor<?x?xi32>
  %result = linalg.generic {indexing_maps = [#whole, #whole],
                            iterator_types = ["parallel", "parallel"]}
      ins(%sum : tensor<?x?xi32>) outs(%c : tensor<?x?xi32>) {
  ^bb0(%v: i32, %old: i32):
    %kept = arith.muli %old, %beta : i32
    %both = arith.addi %v, %kept : i32
    %r = arith.maxsi %both, %zero : i32
    linalg.yield %r : i32
  } -> tensor<?x?xi32>
  func.return %result : tensor<?x?xi32>
}
