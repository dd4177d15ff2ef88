// RUN: 
// -----
// A place is a file and a line.
func.func @k() attributes {ptx.ntid = 32 : i64} {
  ptx.assert_fail "x is negative" at "kernel.py"
  func.return
}
