// RUN: -p frag-tile
// One stage of 32x32x16 a step: the smallest schedule.
func.func @f(%a: memref<64x64xf16>, %b: memref<64x64xf16>, %c: memref<64x64xf32>) {
  frag.matmul %a, %b into %c {tile = array<i64: 32, 32, 16>, warps = array<i64: 1, 1>, stages = 1 : i64} : memref<64x64xf16>, memref<64x64xf16> into memref<64x64xf32>
  func.return
}
// Three stages, any size, an epilogue with a broadcast.
func.func @dynamic(%a: memref<?x?xf16>, %b: memref<?x?xf16>, %c: memref<?x?xf16>, %bias: memref<?xf32>) {
  frag.matmul %a transposed, %b into %c with %bias : memref<?x?xf16>, memref<?x?xf16> into memref<?x?xf16> with memref<?xf32> epilogue {
  ^bb0(%sum: f32, %old: f16, %x: f32):
    %0 = arith.addf %sum, %x : f32
    %1 = arith.truncf %0 : f32 to f16
    frag.yield %1 : f16
  }
  func.return
}
