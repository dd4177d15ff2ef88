// RUN: 
// TARGET: sm_80
// Numbers of both sizes, a literal, a predicate; nothing but a text.
func.func @k(%i: i32, %d: f64, %l: i64) attributes {ptx.ntid = 32 : i64} {
  %lane = ptx.special "tid.x"
  %c0 = arith.constant 0 : index
  %first = arith.cmpi eq, %lane, %c0 : index
  %half = arith.constant 5.000000e-01 : f64
  ptx.printf "%d %g %lld %d %g\0A", %i, %d, %l, %lane, %half if %first : i32, f64, i64, index, f64
  ptx.printf "text\0A"
  func.return
}
