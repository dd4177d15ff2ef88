// RUN: 
// TARGET: sm_90a
// Sparse with the metadata of lane pair 1 and A negated; dense with B negated; single bits, which have no signs.
func.func @k(%p: !ptx.ptr<global>) attributes {ptx.ntid = 128 : i64} {
  %s = ptx.shared 4096 : !ptx.ptr<shared>
  %b = ptx.descriptor %s, 4611686293372403712
  %e = ptx.load %p[0] : !ptx.ptr<global> -> vector<8xui4>
  %r = ptx.load %p[16] : !ptx.ptr<global> -> vector<8xf16>
  %c = ptx.load %p[32] : !ptx.ptr<global> -> vector<4xf32>
  %i = ptx.load %p[48] : !ptx.ptr<global> -> vector<4xi32>
  %acc = ptx.copy %c : vector<4xf32>
  %bits = ptx.copy %i : vector<4xi32>
  ptx.sync "wgmma.fence.sync.aligned"
  %0 = ptx.wgmma "wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16" %r "k" negated, %b "mn", %acc sparse %e[1] : vector<8xf16>, i64, vector<4xf32>, vector<8xui4> -> vector<4xf32>
  %1 = ptx.wgmma "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16" %b "k", %b "k" negated, %0 : i64, i64, vector<4xf32> -> vector<4xf32>
  %2 = ptx.wgmma "wgmma.mma_async.sync.aligned.m64n8k256.s32.b1.b1.and.popc" %b "k", %b "k", %bits : i64, i64, vector<4xi32> -> vector<4xi32>
  ptx.sync "wgmma.commit_group.sync.aligned"
  %3, %4 = ptx.wgmma_wait 0, %1, %2 : vector<4xf32>, vector<4xi32> -> vector<4xf32>, vector<4xi32>
  ptx.store %3, %p[0] : vector<4xf32>, !ptx.ptr<global>
  ptx.store %4, %p[16] : vector<4xi32>, !ptx.ptr<global>
  func.return
}
