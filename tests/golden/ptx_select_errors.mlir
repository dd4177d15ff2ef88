// RUN: 
// -----
// As many conditions.
func.func @k(%p: !ptx.ptr<global>, %s: !ptx.ptr<shared>, %v: vector<4xf16>, %w: vector<4xf32>, %i: index, %f: f32, %q: i1, %h: f16, %u: vector<2xf16>, %d: i64, %e: vector<8xf16>) attributes {ptx.ntid = 32 : i64} {
  %0 = ptx.compare "olt" %w, %w : vector<4xf32> -> vector<4xi1>
  %1 = ptx.select %0, %u, %u : vector<4xi1>, vector<2xf16>
  func.return
}
// -----
// One condition for all is arith.select's.
func.func @k(%p: !ptx.ptr<global>, %s: !ptx.ptr<shared>, %v: vector<4xf16>, %w: vector<4xf32>, %i: index, %f: f32, %q: i1, %h: f16, %u: vector<2xf16>, %d: i64, %e: vector<8xf16>) attributes {ptx.ntid = 32 : i64} {
  %0 = ptx.select %q, %v, %v : i1, vector<4xf16>
  func.return
}
