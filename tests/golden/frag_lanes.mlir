// RUN: -p frag-place
// Registers of an accumulator in lane-level code; tiles in other layouts are converted ahead of it.
func.func @f(%a: memref<16x8xf32>, %b: memref<16x8xf16>, %o: memref<16x8xf32>, %h: memref<16x8xf16>, %n: memref<4xi32>) {
  %0 = frag.load %a[0, 0] : memref<16x8xf32> -> !frag.tile<16x8xf32>
  %1 = frag.load %b[0, 0] : memref<16x8xf16> -> !frag.tile<16x8xf16>
  %half = arith.constant 0.5 : f32
  %2, %3 = frag.lanes %0 in #frag.mma<m16n8k16.f16, c>, %1 in #frag.layout<"lane [8:(1,0) 4:(0,2)] element [2:(0,1) 2:(8,0)]"> : !frag.tile<16x8xf32>, !frag.tile<16x8xf16> -> !frag.tile<16x8xf32> like %0, !frag.tile<16x8xf16> in #frag.mma<m16n8k16.f16, c> {
  ^bb0(%lane: index, %warp: index, %x: vector<4xf32>, %y: vector<4xf16>):
    %u = ptx.shuffle_xor %x xor 1 : vector<4xf32> -> vector<4xf32>
    %v = arith.addf %x, %u : vector<4xf32>
    %scale = ptx.splat %half : f32 -> vector<4xf32>
    %w = arith.mulf %v, %scale : vector<4xf32>
    frag.yield %w, %y : vector<4xf32>, vector<4xf16>
  }
  // side effects alone: whoever holds an element adds to its row's count
  frag.lanes %2 in #frag.mma<m16n8k16.f16, c> : !frag.tile<16x8xf32> {
  ^bb0(%lane: index, %warp: index, %x: vector<4xf32>):
    %i, %j = frag.coordinates operand 0 element 2 : index, index
    %four = arith.constant 4 : index
    %at = arith.remui %i, %four : index
    %one = arith.constant 1 : i32
    %p = frag.pointer %n[%at] : memref<4xi32> -> !ptx.ptr<global>
    ptx.atomic "add.s32" %one, %p[0] : i32, !ptx.ptr<global>
    frag.yield
  }
  // a tile from nothing
  %4 = frag.lanes -> !frag.tile<16x8xf32> in #frag.mma<m16n8k16.f16, c> {
  ^bb0(%lane: index, %warp: index):
    %i, %j = frag.coordinates result 0 element 3 : index, index
    %k = arith.index_cast %j : index to i32
    %z = arith.sitofp %k : i32 to f32
    %x = ptx.splat %z : f32 -> vector<4xf32>
    frag.yield %x : vector<4xf32>
  }
  %5 = frag.map %2, %4 : !frag.tile<16x8xf32>, !frag.tile<16x8xf32> -> !frag.tile<16x8xf32> {
  ^bb0(%x: f32, %y: f32):
    %s = arith.addf %x, %y : f32
    frag.yield %s : f32
  }
  frag.store %5, %o[0, 0] : !frag.tile<16x8xf32>, memref<16x8xf32>
  frag.store %3, %h[0, 0] : !frag.tile<16x8xf16>, memref<16x8xf16>
  func.return
}
