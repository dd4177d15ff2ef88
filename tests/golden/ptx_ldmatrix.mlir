// RUN: 
// TARGET: sm_80
// Four 8x8 matrices, and two that are transposed.
func.func @k(%p: !ptx.ptr<global>) attributes {ptx.ntid = 32 : i64} {
  %s = ptx.shared 1024 : !ptx.ptr<shared>
  %0 = ptx.ldmatrix %s[64] : vector<8xf16>
  %1 = ptx.ldmatrix %s[0] transposed : vector<4xbf16>
  ptx.store %0, %p[0] : vector<8xf16>, !ptx.ptr<global>
  ptx.store %1, %p[0] : vector<4xbf16>, !ptx.ptr<global>
  func.return
}
