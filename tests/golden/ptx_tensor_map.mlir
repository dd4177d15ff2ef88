// RUN: 
// TARGET: sm_90a
// A tensor map of the first argument, and clusters of two blocks.
func.func @k(%p: !ptx.ptr<global>, %map: !ptx.tensor_map) attributes {
    ptx.ntid = 32 : i64, ptx.cluster = array<i64: 2, 1, 1>,
    ptx.tensor_maps = [{array = 0 : i64, box = array<i64: 8, 64>, element = "f16",
                        promotion = 128 : i64, swizzle = 128 : i64, turned = false}]} {
  %m = ptx.shared 1024 : !ptx.ptr<shared>
  %rank = ptx.special "cluster_ctarank"
  ptx.op "prefetch.tensormap [$0]"(%map) : (!ptx.tensor_map) -> ()
  ptx.op "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [$0, {0, $1}], [$2]"(%map, %rank, %m)
      : (!ptx.tensor_map, index, !ptx.ptr<shared>) -> ()
  ptx.sync "cp.async.bulk.commit_group"
  ptx.sync "cp.async.bulk.wait_group", 0
  ptx.sync "barrier.cluster.arrive.aligned"
  ptx.sync "barrier.cluster.wait.aligned"
  func.return
}
