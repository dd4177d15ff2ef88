// RUN: 
// -----
// With a stride the scale is 1.
func.func @k(%p: !ptx.ptr<global>, %s: !ptx.ptr<shared>, %v: vector<4xf16>, %w: vector<4xf32>, %i: index, %f: f32, %q: i1, %h: f16, %u: vector<2xf16>, %d: i64, %e: vector<8xf16>) attributes {ptx.ntid = 32 : i64} {
  %0 = ptx.offset %p, %i * 4 * %i : !ptx.ptr<global> -> !ptx.ptr<global>
  func.return
}
// -----
// The space stays.
func.func @k(%p: !ptx.ptr<global>, %s: !ptx.ptr<shared>, %v: vector<4xf16>, %w: vector<4xf32>, %i: index, %f: f32, %q: i1, %h: f16, %u: vector<2xf16>, %d: i64, %e: vector<8xf16>) attributes {ptx.ntid = 32 : i64} {
  %0 = ptx.offset %p, %i * 4 : !ptx.ptr<global> -> !ptx.ptr<shared>
  func.return
}
// -----
// A scale has 32 bits.
func.func @k(%p: !ptx.ptr<global>, %i: index) attributes {ptx.ntid = 32 : i64} {
  %0 = ptx.offset %p, %i * 4202692608 : !ptx.ptr<global> -> !ptx.ptr<global>
  func.return
}
