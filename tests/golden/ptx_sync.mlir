// RUN: 
// TARGET: sm_80
// What orders memory and threads.
func.func @k(%p: !ptx.ptr<global>) attributes {ptx.ntid = 32 : i64} {
  ptx.sync "cp.async.commit_group"
  ptx.sync "cp.async.wait_group", 1
  ptx.sync "bar.sync", 0
  ptx.sync "bar.warp.sync", -1
  ptx.sync "membar.cta"
  func.return
}
