// RUN: 
// TARGET: sm_90a
// Where a condition holds.
func.func @k(%p: !ptx.ptr<global>) attributes {ptx.ntid = 32 : i64} {
  %x = ptx.load %p[0] : !ptx.ptr<global> -> i32
  %c0 = arith.constant 0 : i32
  %wrong = arith.cmpi slt, %x, %c0 : i32
  scf.if %wrong {
    ptx.assert_fail "x is negative" at "kernel.py" 7
  }
  func.return
}
