// RUN: 
// TARGET: sm_80
// Elements of four bits in another order: unpacked as they are, in that order; else moved one by one.
func.func @k(%p: !ptx.ptr<global>) attributes {ptx.ntid = 32 : i64} {
  %v = ptx.load %p[0] : !ptx.ptr<global> -> vector<2xi32>
  %s = ptx.bitcast %v : vector<2xi32> -> vector<16xsi4>
  %0 = ptx.nibbles %s in [0, 4, 1, 5, 15, 3, 8, 9] : vector<16xsi4> -> vector<8xsi4>
  ptx.store %0, %p[0] : vector<8xsi4>, !ptx.ptr<global>
  %1 = ptx.cvt %s in [0, 4, 1, 5, 2, 6, 3, 7] : vector<16xsi4> -> vector<8xf16>
  ptx.store %1, %p[16] : vector<8xf16>, !ptx.ptr<global>
  %2 = ptx.cvt %s in [0, 8, 1, 9] : vector<16xsi4> -> vector<4xf16>
  ptx.store %2, %p[32] : vector<4xf16>, !ptx.ptr<global>
  %3 = ptx.cvt %s in [1, 5, 8, 1] : vector<16xsi4> -> vector<4xbf16>
  ptx.store %3, %p[48] : vector<4xbf16>, !ptx.ptr<global>
  %4 = ptx.cvt %s in [15, 0] : vector<16xsi4> -> vector<2xf32>
  ptx.store %4, %p[64] : vector<2xf32>, !ptx.ptr<global>
  func.return
}
