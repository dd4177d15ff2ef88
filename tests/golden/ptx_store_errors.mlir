// RUN: 
// -----
// 48 bits.
func.func @k(%p: !ptx.ptr<global>, %s: !ptx.ptr<shared>, %v: vector<4xf16>, %w: vector<4xf32>, %i: index, %f: f32, %q: i1, %h: f16, %u: vector<2xf16>, %d: i64, %e: vector<8xf16>) attributes {ptx.ntid = 32 : i64} {
  %0 = ptx.zero : vector<3xf16>
  ptx.store %0, %p[0] : vector<3xf16>, !ptx.ptr<global>
  func.return
}
