// RUN: 
// TARGET: sm_80
// Element by element; the relations are arith's.
func.func @k(%p: !ptx.ptr<global>) attributes {ptx.ntid = 32 : i64} {
  %w = ptx.load %p[0] : !ptx.ptr<global> -> vector<2xf32>
  %j = ptx.load %p[8] : !ptx.ptr<global> -> vector<2xi32>
  %0 = ptx.compare "olt" %w, %w : vector<2xf32> -> vector<2xi1>
  %1 = ptx.compare "uge" %j, %j : vector<2xi32> -> vector<2xi1>
  %2 = arith.andi %0, %1 : vector<2xi1>
  %3 = ptx.select %2, %w, %w : vector<2xi1>, vector<2xf32>
  ptx.store %3, %p[0] : vector<2xf32>, !ptx.ptr<global>
  func.return
}
