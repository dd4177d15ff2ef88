// RUN: -p frag-place
// Halves of an accumulator: whole fragments, so nothing is moved.
func.func @f(%a: memref<16x32xf32>, %d: memref<16x16xf32>) {
  %0 = frag.load %a[0, 0] : memref<16x32xf32> -> !frag.tile<16x32xf32, #frag.mma<m16n8k16.f16, c>>
  %1 = frag.slice %0 [0, 0] : !frag.tile<16x32xf32, #frag.mma<m16n8k16.f16, c>> -> !frag.tile<16x16xf32>
  %2 = frag.slice %0 [0, 16] : !frag.tile<16x32xf32, #frag.mma<m16n8k16.f16, c>> -> !frag.tile<16x16xf32>
  %3 = frag.map %1, %2 : !frag.tile<16x16xf32>, !frag.tile<16x16xf32> -> !frag.tile<16x16xf32> {
  ^bb0(%u: f32, %v: f32):
    %w = arith.addf %u, %v : f32
    frag.yield %w : f32
  }
  frag.store %3, %d[0, 0] : !frag.tile<16x16xf32>, memref<16x16xf32>
  func.return
}
// Two lanes of four lack what every other column takes: the tile is converted on the way.
func.func @g(%a: memref<16x8xf32>, %d: memref<16x4xf32>) {
  %0 = frag.load %a[0, 0] : memref<16x8xf32> -> !frag.tile<16x8xf32, #frag.layout<"lane [4:(0,1) 8:(1,0)] element [2:(0,4) 2:(8,0)]">>
  %1 = frag.slice %0 [0, 1] strides [1, 2] : !frag.tile<16x8xf32, #frag.layout<"lane [4:(0,1) 8:(1,0)] element [2:(0,4) 2:(8,0)]">> -> !frag.tile<16x4xf32>
  frag.store %1, %d[0, 0] : !frag.tile<16x4xf32>, memref<16x4xf32>
  func.return
}
