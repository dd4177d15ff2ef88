// RUN: 
// TARGET: sm_80
// The product of two sizes in 64 bits; a number takes the place of the second.
func.func @k(%p: !ptx.ptr<global>, %m: index, %n: index) attributes {ptx.ntid = 32 : i64} {
  %eight = arith.constant 8 : index
  %0 = ptx.mul_wide %m, %n
  %1 = ptx.mul_wide %m, %eight
  ptx.store %0, %p[0] : i64, !ptx.ptr<global>
  ptx.store %1, %p[8] : i64, !ptx.ptr<global>
  func.return
}
