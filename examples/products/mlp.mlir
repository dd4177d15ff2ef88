// Y = gelu(X W1 + bias) W2 by two kernels, with gelu (erf) in the first one's epilogue. The hidden values go
// through memory once, as f16: for hidden sizes of thousands a block could not keep them.
//
//   fragir run examples/products/mlp.mlir --entry mlp_hidden --size m=70,k=45,h=130
//   fragir run examples/products/mlp.mlir --entry mlp_out --size m=70,h=130,n=33

func.func @mlp_hidden(%x: memref<?x?xf16> {frag.sizes = ["m", "k"]},
                      %w: memref<?x?xf16> {frag.sizes = ["k", "h"]},
                      %bias: memref<?xf32> {frag.sizes = ["h"]},
                      %hidden: memref<?x?xf16> {frag.sizes = ["m", "h"]}) {
  frag.matmul %x, %w into %hidden with %bias {tile = array<i64: 64, 64, 32>} : memref<?x?xf16>, memref<?x?xf16> into memref<?x?xf16> with memref<?xf32> epilogue {
  ^bb0(%sum: f32, %old: f16, %bias_1: f32):
    %v = arith.addf %sum, %bias_1 : f32
    %0 = arith.constant 5.000000e-01 : f32
    %1 = arith.mulf %v, %0 : f32
    %2 = arith.constant 0.707106769 : f32
    %3 = arith.mulf %v, %2 : f32
    %4 = math.erf %3 : f32
    %5 = arith.constant 1.000000e+00 : f32
    %6 = arith.addf %5, %4 : f32
    %7 = arith.mulf %1, %6 : f32
    %8 = arith.truncf %7 : f32 to f16
    frag.yield %8 : f16
  }
  func.return
}

func.func @mlp_out(%hidden: memref<?x?xf16> {frag.sizes = ["m", "h"]},
                   %w: memref<?x?xf16> {frag.sizes = ["h", "n"]},
                   %y: memref<?x?xf32> {frag.sizes = ["m", "n"]}) {
  frag.matmul %hidden, %w into %y {tile = array<i64: 64, 64, 32>} : memref<?x?xf16>, memref<?x?xf16> into memref<?x?xf32>
  func.return
}
