// RUN: 
// TARGET: sm_80
// One sparse instruction; lane pair 1 holds the metadata that count.
func.func @k(%p: !ptx.ptr<global>) attributes {ptx.ntid = 32 : i64} {
  %a = ptx.load %p[0] : !ptx.ptr<global> -> vector<8xf16>
  %b = ptx.load %p[16] : !ptx.ptr<global> -> vector<8xf16>
  %c = ptx.load %p[32] : !ptx.ptr<global> -> vector<4xf32>
  %e = ptx.load %p[48] : !ptx.ptr<global> -> vector<8xui4>
  %d = ptx.mma_sparse "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32" %a, %b, %c, %e[1] : vector<8xf16>, vector<8xf16>, vector<4xf32>, vector<8xui4> -> vector<4xf32>
  ptx.store %d, %p[0] : vector<4xf32>, !ptx.ptr<global>
  func.return
}
