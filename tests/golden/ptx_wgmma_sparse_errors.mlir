// RUN: 
// -----
// Without metadata.
func.func @k(%p: !ptx.ptr<global>, %b: i64, %c: vector<4xf32>, %i: vector<4xi32>, %e: vector<8xui4>, %w: vector<16xui4>) attributes {ptx.ntid = 128 : i64} {
  %0 = ptx.wgmma "wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16" %b "k", %b "k", %c : i64, i64, vector<4xf32> -> vector<4xf32>
  func.return
}
// -----
// Dense with metadata.
func.func @k(%p: !ptx.ptr<global>, %b: i64, %c: vector<4xf32>, %i: vector<4xi32>, %e: vector<8xui4>, %w: vector<16xui4>) attributes {ptx.ntid = 128 : i64} {
  %0 = ptx.wgmma "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16" %b "k", %b "k", %c sparse %e[0] : i64, i64, vector<4xf32>, vector<8xui4> -> vector<4xf32>
  func.return
}
// -----
// A selector that there is not.
func.func @k(%p: !ptx.ptr<global>, %b: i64, %c: vector<4xf32>, %i: vector<4xi32>, %e: vector<8xui4>, %w: vector<16xui4>) attributes {ptx.ntid = 128 : i64} {
  %0 = ptx.wgmma "wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16" %b "k", %b "k", %c sparse %e[2] : i64, i64, vector<4xf32>, vector<8xui4> -> vector<4xf32>
  func.return
}
// -----
// Two registers of metadata.
func.func @k(%p: !ptx.ptr<global>, %b: i64, %c: vector<4xf32>, %i: vector<4xi32>, %e: vector<8xui4>, %w: vector<16xui4>) attributes {ptx.ntid = 128 : i64} {
  %0 = ptx.wgmma "wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16" %b "k", %b "k", %c sparse %w[0] : i64, i64, vector<4xf32>, vector<16xui4> -> vector<4xf32>
  func.return
}
// -----
// Integers have no sign to flip.
func.func @k(%p: !ptx.ptr<global>, %b: i64, %c: vector<4xf32>, %i: vector<4xi32>, %e: vector<8xui4>, %w: vector<16xui4>) attributes {ptx.ntid = 128 : i64} {
  %0 = ptx.wgmma "wgmma.mma_async.sync.aligned.m64n8k32.s32.s8.s8" %b "k" negated, %b "k", %i : i64, i64, vector<4xi32> -> vector<4xi32>
  func.return
}
