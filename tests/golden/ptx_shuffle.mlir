// RUN: 
// TARGET: sm_80
// Each register as another lane holds it.
func.func @k(%p: !ptx.ptr<global>) attributes {ptx.ntid = 32 : i64} {
  %v = ptx.load %p[0] : !ptx.ptr<global> -> vector<4xf16>
  %0 = ptx.special "laneid"
  %one = arith.constant 1 : index
  %1 = arith.xori %0, %one : index
  %2 = ptx.shuffle %v, %1 : vector<4xf16> -> vector<4xf16>
  %three = arith.constant 3 : index
  %3 = ptx.shuffle %2, %three keeping 28 : vector<4xf16> -> vector<4xf16>
  ptx.store %3, %p[0] : vector<4xf16>, !ptx.ptr<global>
  func.return
}
