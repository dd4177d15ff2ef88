// RUN: 
// TARGET: sm_90a
// Accumulators pass through: what uses them comes after the wait.
func.func @k(%p: !ptx.ptr<global>) attributes {ptx.ntid = 128 : i64} {
  %s = ptx.shared 4096 : !ptx.ptr<shared>
  %a = ptx.descriptor %s, 4611686293372403712
  %c = ptx.zero : vector<4xf32>
  %acc = ptx.copy %c : vector<4xf32>
  %r = ptx.zero : vector<8xf16>
  ptx.sync "wgmma.fence.sync.aligned"
  %0 = ptx.wgmma "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16" %r "k", %a "k", %acc : vector<8xf16>, i64, vector<4xf32> -> vector<4xf32>
  ptx.sync "wgmma.commit_group.sync.aligned"
  %1 = ptx.wgmma_wait 0, %0 : vector<4xf32> -> vector<4xf32>
  ptx.store %1, %p[0] : vector<4xf32>, !ptx.ptr<global>
  func.return
}
