// The sums of a matrix's columns, of any height: tiles are added in registers, the lanes and warps that
// share a column meet once, at the end. The second half of the gradients of norms.
//
//   fragir run examples/rows/column_sums.mlir --size m=100,n=77

!part = !frag.tile<128x16xf32>
!columns = !frag.tile<16xf32>

func.func @column_sums(%x: memref<?x?xf32> {frag.sizes = ["m", "n"]},
                       %y: memref<?xf32> {frag.sizes = ["n"]})
    attributes {frag.grid = #frag.grid<n by 16>, frag.warps = array<i64: 4, 1>} {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %c128 = arith.constant 128 : index
  %f0 = arith.constant 0.0 : f32
  %bx = frag.block_id x
  %column = arith.muli %bx, %c16 : index
  %m = memref.dim %x, %c0 : memref<?x?xf32>
  %0 = frag.fill %f0 : !part
  %sums = scf.for %i = %c0 to %m step %c128 iter_args(%sums_1 = %0) -> (!part) {
    %1 = frag.load %x[%i, %column] masked : memref<?x?xf32> -> !part
    %2 = frag.map %sums_1, %1 : !part, !part -> !part {
    ^bb0(%sums_2: f32, %3: f32):
      %4 = arith.addf %sums_2, %3 : f32
      frag.yield %4 : f32
    }
    scf.yield %2 : !part
  }
  %5 = frag.reduce add dim 0 %sums : !part -> !columns
  frag.store %5, %y[%column] masked : !columns, memref<?xf32>
  func.return
}
