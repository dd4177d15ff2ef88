// RUN: 
// TARGET: sm_90a
// Everywhere; where a predicate holds; for the old value; to shared memory; compared.
func.func @k(%p: !ptx.ptr<global>) attributes {ptx.ntid = 32 : i64} {
  %0 = ptx.special "tid.x"
  %one = arith.constant 1 : index
  %q = arith.cmpi slt, %0, %one : index
  %z = ptx.zero : vector<4xf32>
  %h = ptx.zero : vector<2xf16>
  %n = arith.constant 7 : i32
  %s = ptx.shared 128 : !ptx.ptr<shared>
  ptx.atomic "add.v4.f32" %z, %p[32] : vector<4xf32>, !ptx.ptr<global>
  ptx.atomic "add.noftz.f16x2" %h, %p[4] if %q : vector<2xf16>, !ptx.ptr<global>
  %a = ptx.atomic "max.s32" %n, %s[0] if %q : i32, !ptx.ptr<shared> -> i32
  %b = ptx.atomic "cas.b32" %n, %p[0] expected %a : i32, !ptx.ptr<global> expected i32 -> i32
  ptx.atomic "exch.b32" %b, %p[8] if %q : i32, !ptx.ptr<global>
  func.return
}
