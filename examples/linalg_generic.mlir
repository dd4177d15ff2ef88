// C = relu(A B^T + bias) in linalg, as other compilers write it: f16 in, f32 sums.
//
// convert-linalg-to-frag makes one frag.matmul of it: linalg.fill says where the sum starts, and the
// elementwise operation becomes the epilogue.
//
//   fragir-opt examples/linalg_generic.mlir -p convert-linalg-to-frag
//   fragir run examples/linalg_generic.mlir --size m=70,n=50,k=77
#mk = affine_map<(m, n, k) -> (m, k)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
#whole = affine_map<(m, n) -> (m, n)>
#column = affine_map<(m, n) -> (n)>

func.func @linear(%a: memref<?x?xf16>, %b: memref<?x?xf16>, %c: memref<?x?xf32>,
                  %bias: memref<?xf32> {frag.sizes = ["n"]}) {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%c : memref<?x?xf32>)
  linalg.generic {indexing_maps = [#mk, #nk, #mn],
                  iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<?x?xf16>, memref<?x?xf16>) outs(%c : memref<?x?xf32>) {
  ^bb0(%x: f16, %y: f16, %s: f32):
    %x1 = arith.extf %x : f16 to f32
    %y1 = arith.extf %y : f16 to f32
    %p = arith.mulf %x1, %y1 : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  }
  linalg.generic {indexing_maps = [#column, #whole], iterator_types = ["parallel", "parallel"]}
      ins(%bias : memref<?xf32>) outs(%c : memref<?x?xf32>) {
  ^bb0(%u: f32, %v: f32):
    %sum = arith.addf %v, %u : f32
    %kept = arith.maximumf %sum, %zero : f32
    linalg.yield %kept : f32
  }
  func.return
}
