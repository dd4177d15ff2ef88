// RUN: 
// -----
// Their types stay.
func.func @k(%p: !ptx.ptr<global>, %s: !ptx.ptr<shared>, %v: vector<4xf16>, %w: vector<4xf32>, %i: index, %f: f32, %q: i1, %h: f16, %u: vector<2xf16>, %d: i64, %e: vector<8xf16>) attributes {ptx.ntid = 32 : i64} {
  %0 = ptx.wgmma_wait 0, %w : vector<4xf32> -> vector<2xf32>
  func.return
}
