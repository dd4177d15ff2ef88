// C = A W in the microscaling formats, by frag.matmul: the compiler chooses tiles and roles. @mxfp8: e4m3 with a
// power of two for each 32 numbers of a row, a matrix of scales. @nvfp4: e2m1, two to a byte, with an e4m3
// scale for each 16; scales lie in chunks of 128 rows by four blocks, as tensor memory takes them.
//
//   fragir run examples/quantised/block_scaled_matmul.mlir --entry mxfp8 --target sm_100a --size m=150,n=72,k=160,blocks=5
//   fragir run examples/quantised/block_scaled_matmul.mlir --entry mxfp8 --target sm_120a --size m=150,n=72,k=160,blocks=5
//   fragir run examples/quantised/block_scaled_matmul.mlir --entry nvfp4 --target sm_100a --size m=150,n=72,k=352,rows=2,columns=1,deep=6

func.func @mxfp8(%a: memref<?x?xf8E4M3FN> {frag.sizes = ["m", "k"]},
            %w: memref<?x?xf8E4M3FN> {frag.sizes = ["n", "k"]},
            %a_scale: memref<?x?xf8E8M0FNU> {frag.sizes = ["m", "blocks"]},
            %w_scale: memref<?x?xf8E8M0FNU> {frag.sizes = ["n", "blocks"]},
            %c: memref<?x?xbf16> {frag.sizes = ["m", "n"]})
    attributes {frag.divisible = {k = 32}} {
  frag.matmul %a scaled %a_scale by [1, 32], %w transposed scaled %w_scale transposed by [32, 1] into %c
    : memref<?x?xf8E4M3FN> scaled memref<?x?xf8E8M0FNU>, memref<?x?xf8E4M3FN> scaled memref<?x?xf8E8M0FNU>
      into memref<?x?xbf16>
  func.return
}

func.func @nvfp4(%a: memref<?x?x!frag.packed<f4E2M1FN>> {frag.sizes = ["m", "k"]},
            %w: memref<?x?x!frag.packed<f4E2M1FN>> {frag.sizes = ["n", "k"]},
            %a_scale: memref<?x?x2x256xf8E4M3FN> {frag.sizes = ["rows", "deep"]},
            %w_scale: memref<?x?x2x256xf8E4M3FN> {frag.sizes = ["columns", "deep"]},
            %c: memref<?x?xf32> {frag.sizes = ["m", "n"]})
    attributes {frag.divisible = {k = 32}} {
  frag.matmul %a scaled %a_scale by [1, 16], %w transposed scaled %w_scale transposed by [16, 1] into %c
    : memref<?x?x!frag.packed<f4E2M1FN>> scaled memref<?x?x2x256xf8E4M3FN>,
      memref<?x?x!frag.packed<f4E2M1FN>> scaled memref<?x?x2x256xf8E4M3FN>
      into memref<?x?xf32>
  func.return
}
