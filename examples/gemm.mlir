// C = alpha A B + beta C for any M, N, K: row-major f16 in, f32 sums, f32 out.
//
//   fragir run examples/gemm.mlir --size m=250,n=130,k=77
//   fragir compile examples/gemm.mlir --target sm_90a
func.func @gemm(%a: memref<?x?xf16>, %b: memref<?x?xf16>, %c: memref<?x?xf32>,
                %alpha: f32, %beta: f32) {
  frag.matmul %a, %b into %c : memref<?x?xf16>, memref<?x?xf16> into memref<?x?xf32> epilogue {
  ^bb0(%sum: f32, %old: f32):
    %scaled = arith.mulf %alpha, %sum : f32
    %kept = arith.mulf %beta, %old : f32
    %result = arith.addf %scaled, %kept : f32
    frag.yield %result : f32
  }
  func.return
}
