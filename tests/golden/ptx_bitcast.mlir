// RUN: 
// TARGET: sm_80
// The same bits, read as another type; costs nothing, or two moves of halves.
func.func @k(%p: !ptx.ptr<global>) attributes {ptx.ntid = 32 : i64} {
  %v = ptx.load %p[0] : !ptx.ptr<global> -> vector<4xf16>
  %0 = ptx.bitcast %v : vector<4xf16> -> vector<2xi32>
  ptx.store %0, %p[0] : vector<2xi32>, !ptx.ptr<global>
  %b = ptx.load %p[32] : !ptx.ptr<global> -> i8
  %w = ptx.load %p[16] : !ptx.ptr<global> -> vector<2xf64>
  %1 = ptx.bitcast %w : vector<2xf64> -> vector<4xi32>
  %2 = ptx.slice %1[1] : vector<4xi32> -> vector<2xi32>
  %3 = ptx.bitcast %2 : vector<2xi32> -> f64
  ptx.store %3, %p[16] : f64, !ptx.ptr<global>
  %h = ptx.pack %b, %b : i8, i8 -> vector<2xi8>
  %4 = ptx.bitcast %h : vector<2xi8> -> vector<1xi32>
  ptx.store %4, %p[24] : vector<1xi32>, !ptx.ptr<global>
  func.return
}
