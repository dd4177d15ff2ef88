// y = x transposed, of any size: a block moves 64 x 64 elements. It reads along the rows of x and writes
// along those of y; in between elements change lanes through shared memory, by a conversion that
// frag-place puts in.
//
//   fragir run examples/data/transpose.mlir --size m=130,n=71

!tile = !frag.tile<64x64xf32>

func.func @transpose(%x: memref<?x?xf32> {frag.sizes = ["m", "n"]},
                     %y: memref<?x?xf32> {frag.sizes = ["n", "m"]})
    attributes {frag.grid = #frag.grid<n by 64, m by 64>, frag.warps = array<i64: 4, 1>} {
  %64 = arith.constant 64 : index
  %bx = frag.block_id x
  %by = frag.block_id y
  %col = arith.muli %bx, %64 : index
  %row = arith.muli %by, %64 : index
  %t = frag.load %x[%row, %col] masked : memref<?x?xf32> -> !tile
  %u = frag.transpose %t [1, 0] : !tile -> !tile
  frag.store %u, %y[%col, %row] masked : !tile, memref<?x?xf32>
  func.return
}
