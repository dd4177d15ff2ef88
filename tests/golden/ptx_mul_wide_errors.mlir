// RUN: 
// -----
// Both factors have 32 bits.
func.func @k(%p: !ptx.ptr<global>, %m: index, %x: i64) attributes {ptx.ntid = 32 : i64} {
  %0 = "ptx.mul_wide"(%m, %x) : (index, i64) -> i64
  func.return
}
