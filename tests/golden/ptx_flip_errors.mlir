// RUN: 
// -----
// Of shared memory, whose alignment is known.
func.func @k(%p: !ptx.ptr<global>, %i: index) attributes {ptx.ntid = 32 : i64} {
  %0 = ptx.flip %p, %i
  func.return
}
