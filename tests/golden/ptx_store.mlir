// RUN: 
// TARGET: sm_80
// Everywhere; where a predicate holds.
func.func @k(%p: !ptx.ptr<global>) attributes {ptx.ntid = 32 : i64} {
  %0 = ptx.special "tid.x"
  %one = arith.constant 1 : index
  %q = arith.cmpi slt, %0, %one : index
  %z = ptx.zero : vector<2xf64>
  ptx.store %z, %p[32] : vector<2xf64>, !ptx.ptr<global>
  ptx.store %0, %p[0] if %q : index, !ptx.ptr<global>
  func.return
}
