// RUN: 
// -----
// Three elements of 32 bits.
func.func @k(%p: !ptx.ptr<global>, %s: !ptx.ptr<shared>, %v: vector<4xf16>, %w: vector<4xf32>, %i: index, %f: f32, %q: i1, %h: f16, %u: vector<2xf16>, %d: i64, %e: vector<8xf16>) attributes {ptx.ntid = 32 : i64} {
  %0 = ptx.load %p[0] : !ptx.ptr<global> -> vector<3xf32>
  func.return
}
// -----
// 32 bytes.
func.func @k(%p: !ptx.ptr<global>, %s: !ptx.ptr<shared>, %v: vector<4xf16>, %w: vector<4xf32>, %i: index, %f: f32, %q: i1, %h: f16, %u: vector<2xf16>, %d: i64, %e: vector<8xf16>) attributes {ptx.ntid = 32 : i64} {
  %0 = ptx.load %p[0] : !ptx.ptr<global> -> vector<8xf32>
  func.return
}
// -----
// `else` has the type that is loaded.
func.func @k(%p: !ptx.ptr<global>, %s: !ptx.ptr<shared>, %v: vector<4xf16>, %w: vector<4xf32>, %i: index, %f: f32, %q: i1, %h: f16, %u: vector<2xf16>, %d: i64, %e: vector<8xf16>) attributes {ptx.ntid = 32 : i64} {
  %0 = ptx.load %p[0] if %q else %v : !ptx.ptr<global>, vector<4xf16> -> vector<4xf32>
  func.return
}
// -----
// From no pointer.
func.func @k(%p: !ptx.ptr<global>, %s: !ptx.ptr<shared>, %v: vector<4xf16>, %w: vector<4xf32>, %i: index, %f: f32, %q: i1, %h: f16, %u: vector<2xf16>, %d: i64, %e: vector<8xf16>) attributes {ptx.ntid = 32 : i64} {
  %0 = ptx.load %i[0] : index -> f32
  func.return
}
