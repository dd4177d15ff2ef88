// RUN: 
// TARGET: sm_80
// The elements as scalars.
func.func @k(%p: !ptx.ptr<global>) attributes {ptx.ntid = 32 : i64} {
  %v = ptx.load %p[0] : !ptx.ptr<global> -> vector<2xf16>
  %0, %1 = ptx.unpack %v : vector<2xf16> -> f16, f16
  %2 = arith.addf %0, %1 : f16
  ptx.store %2, %p[0] : f16, !ptx.ptr<global>
  func.return
}
