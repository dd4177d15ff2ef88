// RUN: 
// TARGET: sm_80
// The same bits, read as another type; costs nothing.
func.func @k(%p: !ptx.ptr<global>) attributes {ptx.ntid = 32 : i64} {
  %v = ptx.load %p[0] : !ptx.ptr<global> -> vector<4xf16>
  %0 = ptx.bitcast %v : vector<4xf16> -> vector<2xi32>
  ptx.store %0, %p[0] : vector<2xi32>, !ptx.ptr<global>
  func.return
}
