// RUN: -p frag-place,convert-frag-to-ptx
// -----
// No layout is stated.
func.func @f(%t: !frag.tile<16x8xf32>) {
  frag.lanes %t : !frag.tile<16x8xf32> {
  ^bb0(%lane: index, %warp: index, %x: vector<4xf32>):
    frag.yield
  }
  func.return
}
// -----
// No layout.
func.func @f(%t: !frag.tile<16x8xf32>) {
  frag.lanes %t in "mma" : !frag.tile<16x8xf32> {
  ^bb0(%lane: index, %warp: index, %x: vector<4xf32>):
    frag.yield
  }
  func.return
}
// -----
// No operand.
func.func @f(%t: !frag.tile<16x8xf32>, %u: !frag.tile<16x8xf32>) {
  %0 = frag.lanes %t in #frag.mma<m16n8k16.f16, c> : !frag.tile<16x8xf32> -> !frag.tile<16x8xf32> like %u {
  ^bb0(%lane: index, %warp: index, %x: vector<4xf32>):
    frag.yield %x : vector<4xf32>
  }
  func.return
}
// -----
// The layout is not one of the tile.
func.func @f(%t: !frag.tile<16x4xf32>) {
  frag.lanes %t in #frag.mma<m16n8k16.f16, c> : !frag.tile<16x4xf32> {
  ^bb0(%lane: index, %warp: index, %x: vector<4xf32>):
    frag.yield
  }
  func.return
}
// -----
// Wrong number of elements.
func.func @f(%t: !frag.tile<16x16xf32>) {
  frag.lanes %t in #frag.mma<m16n8k16.f16, c> : !frag.tile<16x16xf32> {
  ^bb0(%lane: index, %warp: index, %x: vector<4xf32>):
    frag.yield
  }
  func.return
}
// -----
// Wrong results.
func.func @f(%t: !frag.tile<16x8xf32>) {
  %0 = frag.lanes %t in #frag.mma<m16n8k16.f16, c> : !frag.tile<16x8xf32> -> !frag.tile<16x8xf16> like %t {
  ^bb0(%lane: index, %warp: index, %x: vector<4xf32>):
    frag.yield %x : vector<4xf32>
  }
  func.return
}
// -----
// Tiles in the region.
func.func @f(%t: !frag.tile<16x8xf32>) {
  frag.lanes %t in #frag.mma<m16n8k16.f16, c> : !frag.tile<16x8xf32> {
  ^bb0(%lane: index, %warp: index, %x: vector<4xf32>):
    %0 = frag.cast %t : !frag.tile<16x8xf32> -> !frag.tile<16x8xf16>
    frag.yield
  }
  func.return
}
// -----
// More warps than the block has.
func.func @f(%a: memref<32x8xf32>) {
  %0 = frag.load %a[0, 0] : memref<32x8xf32> -> !frag.tile<32x8xf32>
  frag.lanes %0 in #frag.mma<m16n8k16.f16, c, warps = [2, 1]> : !frag.tile<32x8xf32> {
  ^bb0(%lane: index, %warp: index, %x: vector<4xf32>):
    frag.yield
  }
  func.return
}
// -----
// Another layout in the type than is stated.
func.func @f() {
  %0 = frag.lanes -> !frag.tile<16x8xf32, #frag.layout<"lane [32:(0,0)] element [16:(1,0) 8:(0,1)]">> in #frag.mma<m16n8k16.f16, c> {
  ^bb0(%lane: index, %warp: index):
    %x = ptx.zero : vector<4xf32>
    frag.yield %x : vector<4xf32>
  }
  func.return
}
// -----
// What no lane can do.
func.func @f(%a: memref<16x8xf32>, %s: f32) {
  %0 = frag.load %a[0, 0] : memref<16x8xf32> -> !frag.tile<16x8xf32>
  frag.lanes %0 in #frag.mma<m16n8k16.f16, c> : !frag.tile<16x8xf32> {
  ^bb0(%lane: index, %warp: index, %x: vector<4xf32>):
    memref.store %s, %a[%lane, %lane] : memref<16x8xf32>
    frag.yield
  }
  func.return
}
