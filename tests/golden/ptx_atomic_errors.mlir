// RUN: 
// -----
// An instruction that there is not.
func.func @k(%p: !ptx.ptr<global>, %v: f32) attributes {ptx.ntid = 32 : i64} {
  ptx.atomic "max.f32" %v, %p[0] : f32, !ptx.ptr<global>
  func.return
}
// -----
// 32 bits for 64.
func.func @k(%p: !ptx.ptr<global>, %v: f32) attributes {ptx.ntid = 32 : i64} {
  ptx.atomic "add.f64" %v, %p[0] : f32, !ptx.ptr<global>
  func.return
}
// -----
// A comparison with nothing.
func.func @k(%p: !ptx.ptr<global>, %v: i32) attributes {ptx.ntid = 32 : i64} {
  ptx.atomic "cas.b32" %v, %p[0] : i32, !ptx.ptr<global>
  func.return
}
// -----
// An old value of another type.
func.func @k(%p: !ptx.ptr<global>, %v: i32) attributes {ptx.ntid = 32 : i64} {
  %o = ptx.atomic "add.s32" %v, %p[0] : i32, !ptx.ptr<global> -> f32
  func.return
}
