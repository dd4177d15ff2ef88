// RUN: 
// TARGET: sm_80
// Registers of its own.
func.func @k(%p: !ptx.ptr<global>) attributes {ptx.ntid = 32 : i64} {
  %v = ptx.load %p[0] : !ptx.ptr<global> -> vector<4xf16>
  %0 = ptx.copy %v : vector<4xf16>
  ptx.store %0, %p[0] : vector<4xf16>, !ptx.ptr<global>
  func.return
}
