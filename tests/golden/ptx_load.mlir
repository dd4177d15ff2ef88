// RUN: 
// TARGET: sm_80
// A scalar, a vector, a predicated one.
func.func @k(%p: !ptx.ptr<global>) attributes {ptx.ntid = 32 : i64} {
  %0 = ptx.special "tid.x"
  %one = arith.constant 1 : index
  %q = arith.cmpi slt, %0, %one : index
  %1 = ptx.load %p[4] : !ptx.ptr<global> -> f32
  %z = ptx.zero : vector<4xf32>
  %2 = ptx.load %p[16] if %q else %z : !ptx.ptr<global>, vector<4xf32> -> vector<4xf32>
  ptx.store %2, %p[0] : vector<4xf32>, !ptx.ptr<global>
  ptx.store %1, %p[0] : f32, !ptx.ptr<global>
  func.return
}
