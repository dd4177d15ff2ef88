// RUN: 
// TARGET: sm_80
// Each register as the lane at a mask's distance holds it; 64 bits in two halves.
func.func @k(%p: !ptx.ptr<global>) attributes {ptx.ntid = 32 : i64} {
  %v = ptx.load %p[0] : !ptx.ptr<global> -> vector<4xf16>
  %1 = ptx.shuffle_xor %v xor 1 : vector<4xf16> -> vector<4xf16>
  ptx.store %1, %p[0] : vector<4xf16>, !ptx.ptr<global>
  %d = ptx.load %p[0] : !ptx.ptr<global> -> f64
  %2 = ptx.shuffle_xor %d xor 16 : f64 -> f64
  ptx.store %2, %p[0] : f64, !ptx.ptr<global>
  func.return
}
