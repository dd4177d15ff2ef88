// RUN: 
// TARGET: sm_120a
// Scales of blocks: byte 3 of lane pair 1's registers for A, byte 2 of lane 3's for B; then a sparse one.
func.func @k(%p: !ptx.ptr<global>) attributes {ptx.ntid = 32 : i64} {
  %a = ptx.load %p[0] : !ptx.ptr<global> -> vector<16xf8E4M3FN>
  %b = ptx.load %p[16] : !ptx.ptr<global> -> vector<8xf4E2M1FN>
  %c = ptx.load %p[32] : !ptx.ptr<global> -> vector<4xf32>
  %x = ptx.load %p[48] : !ptx.ptr<global> -> vector<4xf8E8M0FNU>
  %0 = ptx.mma "mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X.f32.e4m3.e2m1.f32.ue8m0" %a, %b, %c scaled %x, %x [3, 1, 2, 3] : vector<16xf8E4M3FN>, vector<8xf4E2M1FN>, vector<4xf32>, vector<4xf8E8M0FNU>, vector<4xf8E8M0FNU> -> vector<4xf32>
  %q = ptx.load %p[64] : !ptx.ptr<global> -> vector<32x!frag.packed<f4E2M1FN>>
  %e = ptx.load %p[80] : !ptx.ptr<global> -> vector<8xui4>
  %s = ptx.load %p[84] : !ptx.ptr<global> -> vector<4xf8E4M3FN>
  %d = ptx.mma_sparse "mma.sp::ordered_metadata.sync.aligned.m16n8k128.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3" %q, %q, %0, %e[0] scaled %s, %s [0, 1, 0, 2] : vector<32x!frag.packed<f4E2M1FN>>, vector<32x!frag.packed<f4E2M1FN>>, vector<4xf32>, vector<8xui4>, vector<4xf8E4M3FN>, vector<4xf8E4M3FN> -> vector<4xf32>
  ptx.store %d, %p[0] : vector<4xf32>, !ptx.ptr<global>
  func.return
}
