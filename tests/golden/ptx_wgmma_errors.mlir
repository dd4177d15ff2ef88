// RUN: 
// -----
// An mma.
func.func @k(%p: !ptx.ptr<global>, %s: !ptx.ptr<shared>, %v: vector<4xf16>, %w: vector<4xf32>, %i: index, %f: f32, %q: i1, %h: f16, %u: vector<2xf16>, %d: i64, %e: vector<8xf16>) attributes {ptx.ntid = 32 : i64} {
  %0 = ptx.wgmma "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32" %d "k", %d "k", %w : i64, i64, vector<4xf32> -> vector<4xf32>
  func.return
}
// -----
// The accumulator has four registers.
func.func @k(%p: !ptx.ptr<global>, %s: !ptx.ptr<shared>, %v: vector<4xf16>, %w: vector<4xf32>, %i: index, %f: f32, %q: i1, %h: f16, %u: vector<2xf16>, %d: i64, %e: vector<8xf16>) attributes {ptx.ntid = 32 : i64} {
  %0 = ptx.wgmma "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16" %d "k", %d "k", %u : i64, i64, vector<2xf16> -> vector<2xf16>
  func.return
}
// -----
// k or mn.
func.func @k(%p: !ptx.ptr<global>, %s: !ptx.ptr<shared>, %v: vector<4xf16>, %w: vector<4xf32>, %i: index, %f: f32, %q: i1, %h: f16, %u: vector<2xf16>, %d: i64, %e: vector<8xf16>) attributes {ptx.ntid = 32 : i64} {
  %0 = ptx.wgmma "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16" %d "row", %d "k", %w : i64, i64, vector<4xf32> -> vector<4xf32>
  func.return
}
// -----
// C and D are one.
func.func @k(%p: !ptx.ptr<global>, %s: !ptx.ptr<shared>, %v: vector<4xf16>, %w: vector<4xf32>, %i: index, %f: f32, %q: i1, %h: f16, %u: vector<2xf16>, %d: i64, %e: vector<8xf16>) attributes {ptx.ntid = 32 : i64} {
  %0 = ptx.wgmma "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16" %d "k", %d "k", %w : i64, i64, vector<4xf32> -> vector<2xf32>
  func.return
}
// -----
// Bytes are K-major.
func.func @k(%p: !ptx.ptr<global>, %s: !ptx.ptr<shared>, %v: vector<4xf16>, %w: vector<4xf32>, %i: index, %f: f32, %q: i1, %h: f16, %u: vector<2xf16>, %d: i64, %e: vector<8xf16>) attributes {ptx.ntid = 32 : i64} {
  %z = ptx.zero : vector<4xi32>
  %0 = ptx.wgmma "wgmma.mma_async.sync.aligned.m64n8k32.s32.s8.s8" %d "k", %d "mn", %z : i64, i64, vector<4xi32> -> vector<4xi32>
  func.return
}
