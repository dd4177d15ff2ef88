// RUN: -p frag-place{target=sm_90a}
// Each block of a cluster writes a row of its own: its rank.
func.func @f(%c: memref<?x32xf32> {frag.sizes = ["m"]})
    attributes {frag.cluster = array<i64: 2, 2, 1>, frag.grid = #frag.grid<m by 16, m by 16>} {
  %x = frag.block_id x
  %y = frag.block_id y
  %c4 = arith.constant 4 : index
  %down = arith.muli %y, %c4 : index
  %row = arith.addi %x, %down : index
  %r = frag.cluster_rank
  %i = arith.index_cast %r : index to i32
  %v = arith.sitofp %i : i32 to f32
  %t = frag.fill %v : !frag.tile<1x32xf32>
  frag.store %t, %c[%row, 0] masked : !frag.tile<1x32xf32>, memref<?x32xf32>
  func.return
}
