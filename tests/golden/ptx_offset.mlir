// RUN: 
// TARGET: sm_80
// pointer + index * scale, and * a stride that is a value.
func.func @k(%p: !ptx.ptr<global>, %n: index) attributes {ptx.ntid = 32 : i64} {
  %0 = ptx.special "tid.x"
  %1 = ptx.offset %p, %0 * 16 : !ptx.ptr<global> -> !ptx.ptr<global>
  %2 = ptx.offset %1, %0 * 1 * %n : !ptx.ptr<global> -> !ptx.ptr<global>
  %s = ptx.shared 64 : !ptx.ptr<shared>
  %3 = ptx.offset %s, %0 * 2 : !ptx.ptr<shared> -> !ptx.ptr<shared>
  %4 = ptx.load %3[0] : !ptx.ptr<shared> -> f16
  ptx.store %4, %2[8] : f16, !ptx.ptr<global>
  func.return
}
