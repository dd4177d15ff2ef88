// C = A W[g] in e4m3 for rows in groups, as those of a mixture's experts: group g has the rows up to
// ends[g] and a matrix of W, which has a row for each column. The scales are those of DeepSeek-V3: an f32
// for 128 numbers of a row of A, one for 128 x 128 of a matrix of W. Each 128 of K is summed by the tensor
// cores, scaled, and added in f32.
//
//   python -c "import numpy as np; np.save('ends.npy', np.int32([10, 10, 45]))"
//   fragir run examples/quantised/fp8_grouped.mlir --size m=45,n=150,k=160,g=3,k_by_128=2,n_by_128=2 --target sm_90a --arg ends=ends.npy

!activations = memref<?x?xf8E4M3FN>
!weights = memref<?x?x?xf8E4M3FN>

func.func @fp8_grouped(%a: !activations {frag.sizes = ["m", "k"]}, %w: !weights {frag.sizes = ["g", "n", "k"]},
                       %a_scale: memref<?x?xf32> {frag.sizes = ["m", "k_by_128"]},
                       %w_scale: memref<?x?x?xf32> {frag.sizes = ["g", "n_by_128", "k_by_128"]},
                       %ends: memref<?xi32> {frag.sizes = ["g"]},
                       %c: memref<?x?xbf16> {frag.sizes = ["m", "n"]})
    attributes {frag.divisible = {k = 16}} {
  frag.matmul %a scaled %a_scale by [1, 128],
      %w transposed scaled %w_scale transposed by [128, 128] into %c groups %ends {roles}
      : !activations scaled memref<?x?xf32>, !weights scaled memref<?x?x?xf32> into memref<?x?xbf16>
      groups memref<?xi32>
  func.return
}
