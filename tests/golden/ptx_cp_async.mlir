// RUN: 
// TARGET: sm_80
// 16 bytes; 4 where a predicate holds, zeros elsewhere.
func.func @k(%p: !ptx.ptr<global>) attributes {ptx.ntid = 32 : i64} {
  %s = ptx.shared 64 : !ptx.ptr<shared>
  %0 = ptx.special "tid.x"
  %one = arith.constant 1 : index
  %q = arith.cmpi slt, %0, %one : index
  ptx.cp_async %s[0], %p[16], 16 : !ptx.ptr<global>
  ptx.cp_async %s[32], %p[0], 4 if %q : !ptx.ptr<global>
  ptx.sync "cp.async.wait_all"
  func.return
}
