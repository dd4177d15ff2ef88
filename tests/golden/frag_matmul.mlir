// RUN: 
// As it is written; tests/golden/frag_tile.mlir shows what frag-tile makes of it.
func.func @f(%a: memref<?x?xf16>, %b: memref<?x?xf16>, %c: memref<?x?xf32>) {
  frag.matmul %a, %b into %c : memref<?x?xf16>, memref<?x?xf16> into memref<?x?xf32>
  func.return
}
// Transposed operands, another accumulator, a schedule.
func.func @g(%a: memref<64x128xf16>, %b: memref<32x64xf16>, %c: memref<128x32xf16>) {
  frag.matmul %a transposed, %b transposed into %c accumulate f16 {tile = array<i64: 64, 32, 32>, warps = array<i64: 2, 1>, stages = 2 : i64} : memref<64x128xf16>, memref<32x64xf16> into memref<128x32xf16>
  func.return
}
// An epilogue with operands that are broadcast.
func.func @h(%a: memref<?x?xsi8>, %b: memref<?x?xui8>, %c: memref<?x?xi32>, %r: memref<?x1xi32>, %k: memref<?xi32>) {
  frag.matmul %a, %b into %c with %r, %k : memref<?x?xsi8>, memref<?x?xui8> into memref<?x?xi32> with memref<?x1xi32>, memref<?xi32> epilogue {
  ^bb0(%sum: i32, %old: i32, %x: i32, %y: i32):
    %0 = arith.addi %sum, %x : i32
    %1 = arith.addi %0, %y : i32
    frag.yield %1 : i32
  }
  func.return
}
// A batch, of which all products share B, and one value for each matrix.
func.func @batch(%a: memref<?x?x?x64xf16>, %b: memref<64x?xf16>, %c: memref<?x?x?x?xf32>, %x: memref<?x1x1x1xf32>) {
  frag.matmul %a, %b into %c with %x : memref<?x?x?x64xf16>, memref<64x?xf16> into memref<?x?x?x?xf32> with memref<?x1x1x1xf32> epilogue {
  ^bb0(%sum: f32, %old: f32, %y: f32):
    %0 = arith.mulf %sum, %y : f32
    frag.yield %0 : f32
  }
  func.return
}
// Sums in parts, which go through memory, or are added to C.
func.func @parts(%a: memref<?x?xf16>, %b: memref<?x?xf16>, %c: memref<?x?xf16>, %p: memref<4x?x?xf32>, %n: memref<?x?xi32>) {
  frag.matmul %a, %b into %c through %p, %n {split_k = 4 : i64} : memref<?x?xf16>, memref<?x?xf16> into memref<?x?xf16> through memref<4x?x?xf32>, memref<?x?xi32>
  func.return
}
// As many parts as suit.
func.func @open(%a: memref<64x4096xf16>, %b: memref<4096x64xf16>, %c: memref<64x64xf16>, %p: memref<?x64x64xf32>, %n: memref<?x?xi32>) {
  frag.matmul %a, %b into %c through %p, %n : memref<64x4096xf16>, memref<4096x64xf16> into memref<64x64xf16> through memref<?x64x64xf32>, memref<?x?xi32>
  func.return
}
func.func @added(%a: memref<?x?xf16>, %b: memref<?x?xf16>, %c: memref<?x?xf32>) {
  frag.matmul %a, %b into %c {stream_k = 2 : i64} : memref<?x?xf16>, memref<?x?xf16> into memref<?x?xf32> epilogue {
  ^bb0(%sum: f32, %old: f32):
    %0 = arith.addf %sum, %old : f32
    frag.yield %0 : f32
  }
  func.return
}
// Rows in groups, each with a matrix of B.
func.func @experts(%a: memref<?x?xf16>, %b: memref<8x?x?xf16>, %c: memref<?x?xf32>, %ends: memref<8xi32>) {
  frag.matmul %a, %b transposed into %c groups %ends : memref<?x?xf16>, memref<8x?x?xf16> into memref<?x?xf32> groups memref<8xi32>
  func.return
}
