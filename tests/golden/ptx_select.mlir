// RUN: 
// TARGET: sm_80
// Of two vectors, element by element.
func.func @k(%p: !ptx.ptr<global>) attributes {ptx.ntid = 32 : i64} {
  %v = ptx.load %p[0] : !ptx.ptr<global> -> vector<4xf16>
  %0 = ptx.compare "olt" %v, %v : vector<4xf16> -> vector<4xi1>
  %1 = ptx.select %0, %v, %v : vector<4xi1>, vector<4xf16>
  ptx.store %1, %p[0] : vector<4xf16>, !ptx.ptr<global>
  func.return
}
