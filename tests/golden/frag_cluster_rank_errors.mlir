// RUN: -p frag-place{target=sm_90a},convert-frag-to-ptx{target=sm_90a}
// -----
// Two numbers.
func.func @f() attributes {frag.cluster = array<i64: 2, 2>} {
  %r = frag.cluster_rank
  func.return
}
// -----
// More blocks than every machine has.
func.func @f() attributes {frag.cluster = array<i64: 4, 4, 1>} {
  %r = frag.cluster_rank
  func.return
}
// -----
// No blocks.
func.func @f() attributes {frag.cluster = array<i64: 0, 1, 1>} {
  %r = frag.cluster_rank
  func.return
}
