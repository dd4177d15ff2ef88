// RUN: 
// -----
// A selector that there is not.
func.func @k(%p: !ptx.ptr<global>, %s: !ptx.ptr<shared>, %v: vector<4xf16>, %w: vector<4xf32>, %i: index, %f: f32, %q: i1, %h: f16, %u: vector<2xf16>, %d: i64, %e: vector<8xf16>) attributes {ptx.ntid = 32 : i64} {
  %0 = ptx.mma_sparse "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32" %e, %e, %w, %u[2] : vector<8xf16>, vector<8xf16>, vector<4xf32>, vector<2xf16> -> vector<4xf32>
  func.return
}
// -----
// A dense instruction.
func.func @k(%p: !ptx.ptr<global>, %s: !ptx.ptr<shared>, %v: vector<4xf16>, %w: vector<4xf32>, %i: index, %f: f32, %q: i1, %h: f16, %u: vector<2xf16>, %d: i64, %e: vector<8xf16>) attributes {ptx.ntid = 32 : i64} {
  %0 = ptx.mma_sparse "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32" %e, %v, %w, %u[0] : vector<8xf16>, vector<4xf16>, vector<4xf32>, vector<2xf16> -> vector<4xf32>
  func.return
}
// -----
// B has four registers.
func.func @k(%p: !ptx.ptr<global>, %s: !ptx.ptr<shared>, %v: vector<4xf16>, %w: vector<4xf32>, %i: index, %f: f32, %q: i1, %h: f16, %u: vector<2xf16>, %d: i64, %e: vector<8xf16>) attributes {ptx.ntid = 32 : i64} {
  %0 = ptx.mma_sparse "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32" %e, %v, %w, %u[0] : vector<8xf16>, vector<4xf16>, vector<4xf32>, vector<2xf16> -> vector<4xf32>
  func.return
}
