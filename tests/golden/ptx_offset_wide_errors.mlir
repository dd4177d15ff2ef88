// RUN: 
// -----
// With a stride the scale is 1.
func.func @k(%p: !ptx.ptr<global>, %x: i64) attributes {ptx.ntid = 32 : i64} {
  %0 = ptx.offset_wide %p, %x * 4 * %x
  func.return
}
// -----
// A pointer into shared memory has 32 bits.
func.func @k(%p: !ptx.ptr<global>, %x: i64) attributes {ptx.ntid = 32 : i64} {
  %s = ptx.shared 64 : !ptx.ptr<shared>
  %0 = "ptx.offset_wide"(%s, %x) <{scale = 4 : i64}> : (!ptx.ptr<shared>, i64) -> !ptx.ptr<global>
  func.return
}
