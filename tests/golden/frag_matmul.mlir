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
