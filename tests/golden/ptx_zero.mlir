// RUN: 
// TARGET: sm_80
// All bits zero, of any type.
func.func @k(%p: !ptx.ptr<global>) attributes {ptx.ntid = 32 : i64} {
  %0 = ptx.zero : vector<4xbf16>
  %1 = ptx.zero : f8E4M3FN
  ptx.store %0, %p[0] : vector<4xbf16>, !ptx.ptr<global>
  ptx.store %1, %p[0] : f8E4M3FN, !ptx.ptr<global>
  func.return
}
