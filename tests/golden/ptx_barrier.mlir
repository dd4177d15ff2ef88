// RUN: 
// TARGET: sm_80
// Two warps wait for each other, and two others.
func.func @k(%p: !ptx.ptr<global>) attributes {ptx.ntid = 128 : i64} {
  %thread = ptx.special "tid.x"
  %six = arith.constant 6 : index
  %pair = arith.shrui %thread, %six : index
  %one = arith.constant 1 : index
  %number = arith.addi %pair, %one : index
  ptx.barrier %number, 64
  ptx.barrier %one, 128
  func.return
}
