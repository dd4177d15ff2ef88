// RUN: 
// -----
// Of four bits.
func.func @k(%v: vector<8xsi8>) attributes {ptx.ntid = 32 : i64} {
  %0 = ptx.nibbles %v in [1, 0] : vector<8xsi8> -> vector<2xsi8>
  func.return
}
// -----
// A number for each.
func.func @k(%v: vector<8xsi4>) attributes {ptx.ntid = 32 : i64} {
  %0 = ptx.nibbles %v in [1, 0] : vector<8xsi4> -> vector<4xsi4>
  func.return
}
// -----
// That there are.
func.func @k(%v: vector<8xsi4>) attributes {ptx.ntid = 32 : i64} {
  %0 = ptx.nibbles %v in [1, 8] : vector<8xsi4> -> vector<2xsi4>
  func.return
}
// -----
// One type.
func.func @k(%v: vector<8xsi4>) attributes {ptx.ntid = 32 : i64} {
  %0 = ptx.nibbles %v in [1, 0] : vector<8xsi4> -> vector<2xui4>
  func.return
}
// -----
// A cast in an order is from nibbles.
func.func @k(%v: vector<8xsi8>) attributes {ptx.ntid = 32 : i64} {
  %0 = ptx.cvt %v in [1, 0] : vector<8xsi8> -> vector<2xf16>
  func.return
}
// -----
// A number for each.
func.func @k(%v: vector<8xsi4>) attributes {ptx.ntid = 32 : i64} {
  %0 = ptx.cvt %v in [1] : vector<8xsi4> -> vector<2xf16>
  func.return
}
// -----
// That there are.
func.func @k(%v: vector<8xsi4>) attributes {ptx.ntid = 32 : i64} {
  %0 = ptx.cvt %v in [1, 8] : vector<8xsi4> -> vector<2xf16>
  func.return
}
