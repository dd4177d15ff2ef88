// RUN: 
// TARGET: sm_90a
// The constant fields of a wgmma descriptor and an address.
func.func @k(%p: !ptx.ptr<global>) attributes {ptx.ntid = 32 : i64} {
  %s = ptx.shared 1024 : !ptx.ptr<shared>
  %0 = ptx.descriptor %s, 4611686293372403712
  ptx.store %0, %p[0] : i64, !ptx.ptr<global>
  func.return
}
