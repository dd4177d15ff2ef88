// How often each number from 0 to n - 1 occurs among m: added to h by atomics, 256 numbers a block.
// Numbers that have no place in h are not counted.
//
//   fragir run examples/data/histogram.mlir --size m=5000,n=100

!numbers = !frag.tile<256xi32>

func.func @histogram(%x: memref<?xi32> {frag.sizes = ["m"]}, %h: memref<?xi32> {frag.sizes = ["n"]})
    attributes {frag.grid = #frag.grid<m by 256>, frag.warps = array<i64: 2, 1>} {
  %256 = arith.constant 256 : index
  %none = arith.constant -1 : i32
  %one = arith.constant 1 : i32
  %b = frag.block_id x
  %i = arith.muli %b, %256 : index
  %t = frag.load %x[%i] masked other %none : memref<?xi32> -> !numbers
  %ones = frag.fill %one : !numbers
  frag.atomic add %ones, %h[%t] masked : !numbers, memref<?xi32>, !numbers
  func.return
}
