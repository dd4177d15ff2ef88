// RUN: 
// -----
// No such instruction.
func.func @k(%p: !ptx.ptr<global>, %s: !ptx.ptr<shared>, %v: vector<4xf16>, %w: vector<4xf32>, %i: index, %f: f32, %q: i1, %h: f16, %u: vector<2xf16>, %d: i64, %e: vector<8xf16>) attributes {ptx.ntid = 32 : i64} {
  %0 = ptx.mma "mma.sync.aligned.m16n8k15.row.col.f32.f16.f16.f32" %e, %v, %w : vector<8xf16>, vector<4xf16>, vector<4xf32> -> vector<4xf32>
  func.return
}
// -----
// A has four registers.
func.func @k(%p: !ptx.ptr<global>, %s: !ptx.ptr<shared>, %v: vector<4xf16>, %w: vector<4xf32>, %i: index, %f: f32, %q: i1, %h: f16, %u: vector<2xf16>, %d: i64, %e: vector<8xf16>) attributes {ptx.ntid = 32 : i64} {
  %0 = ptx.mma "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32" %v, %v, %w : vector<4xf16>, vector<4xf16>, vector<4xf32> -> vector<4xf32>
  func.return
}
// -----
// D is f32.
func.func @k(%p: !ptx.ptr<global>, %s: !ptx.ptr<shared>, %v: vector<4xf16>, %w: vector<4xf32>, %i: index, %f: f32, %q: i1, %h: f16, %u: vector<2xf16>, %d: i64, %e: vector<8xf16>) attributes {ptx.ntid = 32 : i64} {
  %0 = ptx.mma "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32" %e, %v, %w : vector<8xf16>, vector<4xf16>, vector<4xf32> -> vector<8xf16>
  func.return
}
// -----
// A wgmma.
func.func @k(%p: !ptx.ptr<global>, %s: !ptx.ptr<shared>, %v: vector<4xf16>, %w: vector<4xf32>, %i: index, %f: f32, %q: i1, %h: f16, %u: vector<2xf16>, %d: i64, %e: vector<8xf16>) attributes {ptx.ntid = 32 : i64} {
  %0 = ptx.mma "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16" %e, %v, %w : vector<8xf16>, vector<4xf16>, vector<4xf32> -> vector<4xf32>
  func.return
}
