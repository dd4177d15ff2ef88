// RUN: 
// TARGET: sm_80
// Special registers.
func.func @k(%p: !ptx.ptr<global>) attributes {ptx.ntid = 32 : i64} {
  %0 = ptx.special "tid.x"
  %1 = ptx.special "ctaid.y"
  %2 = arith.addi %0, %1 : index
  ptx.store %2, %p[0] : index, !ptx.ptr<global>
  func.return
}
