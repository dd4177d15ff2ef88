// RUN: 
// TARGET: sm_80
// Vectors end to end; only a name.
func.func @k(%p: !ptx.ptr<global>) attributes {ptx.ntid = 32 : i64} {
  %v = ptx.load %p[0] : !ptx.ptr<global> -> vector<4xf16>
  %0 = ptx.concat %v, %v : vector<4xf16>, vector<4xf16> -> vector<8xf16>
  ptx.store %0, %p[0] : vector<8xf16>, !ptx.ptr<global>
  func.return
}
