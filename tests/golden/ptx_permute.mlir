// RUN: 
// TARGET: sm_80
// Bytes of two registers: lanes of odd number swap the halves, the others take the high ones.
func.func @k(%p: !ptx.ptr<global>) attributes {ptx.ntid = 32 : i64} {
  %v = ptx.load %p[0] : !ptx.ptr<global> -> vector<4xf16>
  %0 = ptx.slice %v[0] : vector<4xf16> -> vector<2xf16>
  %1 = ptx.slice %v[2] : vector<4xf16> -> vector<2xf16>
  %lane = ptx.special "laneid"
  %one = arith.constant 1 : index
  %odd = arith.andi %lane, %one : index
  %change = arith.constant 25668 : index
  %2 = arith.muli %odd, %change : index
  %even = arith.constant 30258 : index
  %3 = arith.xori %2, %even : index
  %4 = ptx.permute %0, %1, %3 : vector<2xf16>
  %5 = ptx.permute %0, %1, %even : vector<2xf16>
  %6 = ptx.concat %4, %5 : vector<2xf16>, vector<2xf16> -> vector<4xf16>
  %word = ptx.bitcast %0 : vector<2xf16> -> i32
  %7 = ptx.permute %word, %word, %one : i32
  ptx.store %6, %p[0] : vector<4xf16>, !ptx.ptr<global>
  ptx.store %7, %p[8] : i32, !ptx.ptr<global>
  func.return
}
