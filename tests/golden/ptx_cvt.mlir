// RUN: 
// TARGET: sm_80
// Every element as another type.
func.func @k(%p: !ptx.ptr<global>) attributes {ptx.ntid = 32 : i64} {
  %v = ptx.load %p[0] : !ptx.ptr<global> -> vector<4xf16>
  %0 = ptx.cvt %v : vector<4xf16> -> vector<4xf32>
  %1 = ptx.cvt %0 : vector<4xf32> -> vector<4xbf16>
  ptx.store %1, %p[0] : vector<4xbf16>, !ptx.ptr<global>
  func.return
}
