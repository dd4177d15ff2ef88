// RUN: 
// -----
// Whole registers.
func.func @k(%p: !ptx.ptr<global>, %s: !ptx.ptr<shared>, %v: vector<4xf16>, %w: vector<4xf32>, %i: index, %f: f32, %q: i1, %h: f16, %u: vector<2xf16>, %d: i64, %e: vector<8xf16>) attributes {ptx.ntid = 32 : i64} {
  %0 = ptx.shuffle %h, %i : f16 -> f16
  func.return
}
// -----
// The type stays.
func.func @k(%p: !ptx.ptr<global>, %s: !ptx.ptr<shared>, %v: vector<4xf16>, %w: vector<4xf32>, %i: index, %f: f32, %q: i1, %h: f16, %u: vector<2xf16>, %d: i64, %e: vector<8xf16>) attributes {ptx.ntid = 32 : i64} {
  %0 = ptx.shuffle %v, %i : vector<4xf16> -> vector<2xf32>
  func.return
}
// -----
// Some bits stay, not all.
func.func @k(%p: !ptx.ptr<global>, %s: !ptx.ptr<shared>, %v: vector<4xf16>, %w: vector<4xf32>, %i: index, %f: f32, %q: i1, %h: f16, %u: vector<2xf16>, %d: i64, %e: vector<8xf16>) attributes {ptx.ntid = 32 : i64} {
  %0 = ptx.shuffle %v, %i keeping 32 : vector<4xf16> -> vector<4xf16>
  func.return
}
