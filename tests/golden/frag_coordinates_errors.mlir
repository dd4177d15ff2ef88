// RUN: -p frag-place
// -----
// Outside of lane-level code.
func.func @f() {
  %i, %j = frag.coordinates operand 0 element 0 : index, index
  func.return
}
// -----
// No such tile.
func.func @f(%t: !frag.tile<16x8xf32>) {
  frag.lanes %t in #frag.mma<m16n8k16.f16, c> : !frag.tile<16x8xf32> {
  ^bb0(%lane: index, %warp: index, %x: vector<4xf32>):
    %i, %j = frag.coordinates result 0 element 0 : index, index
    frag.yield
  }
  func.return
}
// -----
// No such element.
func.func @f(%t: !frag.tile<16x8xf32>) {
  frag.lanes %t in #frag.mma<m16n8k16.f16, c> : !frag.tile<16x8xf32> {
  ^bb0(%lane: index, %warp: index, %x: vector<4xf32>):
    %i, %j = frag.coordinates operand 0 element 4 : index, index
    frag.yield
  }
  func.return
}
// -----
// An index for each dimension.
func.func @f(%t: !frag.tile<16x8xf32>) {
  frag.lanes %t in #frag.mma<m16n8k16.f16, c> : !frag.tile<16x8xf32> {
  ^bb0(%lane: index, %warp: index, %x: vector<4xf32>):
    %i = frag.coordinates operand 0 element 1 : index
    frag.yield
  }
  func.return
}
// -----
// What it is of.
func.func @f() {
  %i = frag.coordinates argument 0 element 1 : index
  func.return
}
