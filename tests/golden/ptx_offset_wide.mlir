// RUN: 
// TARGET: sm_80
// pointer + index * scale, or * a stride that is a value, in 64 bits; a scale of 1 is only added.
func.func @k(%p: !ptx.ptr<global>, %m: index, %n: index, %x: i64) attributes {ptx.ntid = 32 : i64} {
  %0 = ptx.special "tid.x"
  %1 = ptx.mul_wide %0, %n
  %2 = ptx.offset_wide %p, %1 * 4
  %3 = ptx.mul_wide %m, %n
  %4 = ptx.offset_wide %2, %x * 1 * %3
  %5 = ptx.offset_wide %4, %x * 1
  %6 = ptx.offset_wide %5, %x * 4202692608
  %7 = ptx.load %6[0] : !ptx.ptr<global> -> f32
  ptx.store %7, %2[8] : f32, !ptx.ptr<global>
  func.return
}
