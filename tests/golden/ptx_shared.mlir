// RUN: 
// TARGET: sm_80
// Two arrays, the second after the first.
func.func @k(%p: !ptx.ptr<global>) attributes {ptx.ntid = 32 : i64} {
  %0 = ptx.shared 100 : !ptx.ptr<shared>
  %1 = ptx.shared 16 : !ptx.ptr<shared>
  %2 = ptx.load %0[0] : !ptx.ptr<shared> -> f32
  %3 = ptx.load %1[4] : !ptx.ptr<shared> -> f32
  %4 = arith.addf %2, %3 : f32
  ptx.store %4, %p[0] : f32, !ptx.ptr<global>
  func.return
}
