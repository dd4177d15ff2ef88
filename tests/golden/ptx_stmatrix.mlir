// RUN: 
// TARGET: sm_90
// Two 8x8 matrices to shared memory; transposed.
func.func @k(%p: !ptx.ptr<global>) attributes {ptx.ntid = 32 : i64} {
  %s = ptx.shared 256 : !ptx.ptr<shared>
  %v = ptx.load %p[0] : !ptx.ptr<global> -> vector<4xf16>
  ptx.stmatrix %v, %s[0] : vector<4xf16>
  ptx.stmatrix %v, %s[128] transposed : vector<4xf16>
  func.return
}
