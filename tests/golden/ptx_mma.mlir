// RUN: 
// TARGET: sm_80
// One instruction.
func.func @k(%p: !ptx.ptr<global>) attributes {ptx.ntid = 32 : i64} {
  %a = ptx.load %p[0] : !ptx.ptr<global> -> vector<8xf16>
  %b = ptx.load %p[16] : !ptx.ptr<global> -> vector<4xf16>
  %c = ptx.load %p[32] : !ptx.ptr<global> -> vector<4xf32>
  %d = ptx.mma "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32" %a, %b, %c : vector<8xf16>, vector<4xf16>, vector<4xf32> -> vector<4xf32>
  ptx.store %d, %p[0] : vector<4xf32>, !ptx.ptr<global>
  func.return
}
