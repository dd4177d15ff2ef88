// RUN: 
// TARGET: sm_80
// A vector of one scalar.
func.func @k(%p: !ptx.ptr<global>) attributes {ptx.ntid = 32 : i64} {
  %x = ptx.load %p[0] : !ptx.ptr<global> -> f16
  %0 = ptx.splat %x : f16 -> vector<4xf16>
  ptx.store %0, %p[0] : vector<4xf16>, !ptx.ptr<global>
  func.return
}
