// RUN: -p frag-tile
// -----
// K differs.
func.func @f(%a: memref<64x32xf16>, %b: memref<64x16xf16>, %c: memref<64x16xf32>) {
  frag.matmul %a, %b into %c : memref<64x32xf16>, memref<64x16xf16> into memref<64x16xf32>
  func.return
}
// -----
// M differs.
func.func @f(%a: memref<64x32xf16>, %b: memref<32x16xf16>, %c: memref<32x16xf32>) {
  frag.matmul %a, %b into %c : memref<64x32xf16>, memref<32x16xf16> into memref<32x16xf32>
  func.return
}
// -----
// f16 by f64.
func.func @f(%a: memref<64x32xf16>, %b: memref<32x16xf64>, %c: memref<64x16xf64>) {
  frag.matmul %a, %b into %c : memref<64x32xf16>, memref<32x16xf64> into memref<64x16xf64>
  func.return
}
// -----
// No instruction multiplies f32.
func.func @f(%a: memref<64x32xf32>, %b: memref<32x16xf32>, %c: memref<64x16xf32>) {
  frag.matmul %a, %b into %c : memref<64x32xf32>, memref<32x16xf32> into memref<64x16xf32>
  func.return
}
// -----
// bf16 is not summed in f16.
func.func @f(%a: memref<64x32xbf16>, %b: memref<32x16xbf16>, %c: memref<64x16xf16>) {
  frag.matmul %a, %b into %c accumulate f16 : memref<64x32xbf16>, memref<32x16xbf16> into memref<64x16xf16>
  func.return
}
// -----
// Nothing accumulates in i8.
func.func @f(%a: memref<64x32xf16>, %b: memref<32x16xf16>, %c: memref<64x16xf16>) {
  frag.matmul %a, %b into %c accumulate i8 : memref<64x32xf16>, memref<32x16xf16> into memref<64x16xf16>
  func.return
}
// -----
// A vector is no matrix.
func.func @f(%a: memref<64xf16>, %b: memref<64x16xf16>, %c: memref<64x16xf32>) {
  frag.matmul %a, %b into %c : memref<64xf16>, memref<64x16xf16> into memref<64x16xf32>
  func.return
}
// -----
// An operand of the epilogue that cannot be broadcast.
func.func @f(%a: memref<64x32xf16>, %b: memref<32x16xf16>, %c: memref<64x16xf32>, %x: memref<7xf32>) {
  frag.matmul %a, %b into %c with %x : memref<64x32xf16>, memref<32x16xf16> into memref<64x16xf32> with memref<7xf32> epilogue {
  ^bb0(%s: f32, %o: f32, %e: f32):
    frag.yield %s : f32
  }
  func.return
}
// -----
// An operand without an epilogue.
func.func @f(%a: memref<64x32xf16>, %b: memref<32x16xf16>, %c: memref<64x16xf32>, %x: memref<16xf32>) {
  frag.matmul %a, %b into %c with %x : memref<64x32xf16>, memref<32x16xf16> into memref<64x16xf32> with memref<16xf32>
  func.return
}
// -----
// The epilogue yields something else than C holds.
func.func @f(%a: memref<64x32xf16>, %b: memref<32x16xf16>, %c: memref<64x16xf16>) {
  frag.matmul %a, %b into %c : memref<64x32xf16>, memref<32x16xf16> into memref<64x16xf16> epilogue {
  ^bb0(%s: f32, %o: f16):
    frag.yield %s : f32
  }
  func.return
}
// -----
// The epilogue takes something else.
func.func @f(%a: memref<64x32xf16>, %b: memref<32x16xf16>, %c: memref<64x16xf16>) {
  frag.matmul %a, %b into %c : memref<64x32xf16>, memref<32x16xf16> into memref<64x16xf16> epilogue {
  ^bb0(%s: f16, %o: f16):
    frag.yield %s : f16
  }
  func.return
}
// -----
// A tile that the warps' instructions do not divide.
func.func @f(%a: memref<?x?xf16>, %b: memref<?x?xf16>, %c: memref<?x?xf32>) {
  frag.matmul %a, %b into %c {tile = array<i64: 40, 32, 32>} : memref<?x?xf16>, memref<?x?xf16> into memref<?x?xf32>
  func.return
}
// -----
// A tile has three numbers.
func.func @f(%a: memref<?x?xf16>, %b: memref<?x?xf16>, %c: memref<?x?xf32>) {
  frag.matmul %a, %b into %c {tile = array<i64: 64, 64>} : memref<?x?xf16>, memref<?x?xf16> into memref<?x?xf32>
  func.return
}
// -----
// More stages than memory.
func.func @f(%a: memref<?x?xf16>, %b: memref<?x?xf16>, %c: memref<?x?xf32>) {
  frag.matmul %a, %b into %c {stages = 40 : i64} : memref<?x?xf16>, memref<?x?xf16> into memref<?x?xf32>
  func.return
}
// -----
// At least one stage.
func.func @f(%a: memref<?x?xf16>, %b: memref<?x?xf16>, %c: memref<?x?xf32>) {
  frag.matmul %a, %b into %c {stages = 0 : i64} : memref<?x?xf16>, memref<?x?xf16> into memref<?x?xf32>
  func.return
}
// -----
// More warps than a block has.
func.func @f(%a: memref<?x?xf16>, %b: memref<?x?xf16>, %c: memref<?x?xf32>) {
  frag.matmul %a, %b into %c {tile = array<i64: 256, 256, 16>, warps = array<i64: 8, 8>} : memref<?x?xf16>, memref<?x?xf16> into memref<?x?xf32>
  func.return
}
// -----
// Something beside the product.
func.func @f(%a: memref<16x16xf16>, %c: memref<16x16xf32>) {
  frag.matmul %a, %a into %c : memref<16x16xf16>, memref<16x16xf16> into memref<16x16xf32>
  frag.barrier
  func.return
}
// -----
// Another batch.
func.func @f(%a: memref<3x?x?xf16>, %b: memref<?x?xf16>, %c: memref<2x?x?xf32>) {
  frag.matmul %a, %b into %c : memref<3x?x?xf16>, memref<?x?xf16> into memref<2x?x?xf32>
  func.return
}
// -----
// Products of one matrix that A has several of.
func.func @f(%a: memref<3x?x?xf16>, %b: memref<?x?xf16>, %c: memref<?x?xf32>) {
  frag.matmul %a, %b into %c : memref<3x?x?xf16>, memref<?x?xf16> into memref<?x?xf32>
  func.return
}
// -----
// As many parts as suit, of another type than the sum.
func.func @f(%a: memref<?x?xf16>, %b: memref<?x?xf16>, %c: memref<?x?xf16>, %p: memref<?x?x?xf16>, %n: memref<?x?xi32>) {
  frag.matmul %a, %b into %c through %p, %n : memref<?x?xf16>, memref<?x?xf16> into memref<?x?xf16> through memref<?x?x?xf16>, memref<?x?xi32>
  func.return
}
// -----
// Cut twice.
func.func @f(%a: memref<?x?xf16>, %b: memref<?x?xf16>, %c: memref<?x?xf16>, %p: memref<4x?x?xf32>, %n: memref<?x?xi32>) {
  frag.matmul %a, %b into %c through %p, %n {split_k = 2 : i64, stream_k = 2 : i64} : memref<?x?xf16>, memref<?x?xf16> into memref<?x?xf16> through memref<4x?x?xf32>, memref<?x?xi32>
  func.return
}
// -----
// No part.
func.func @f(%a: memref<?x?xf16>, %b: memref<?x?xf16>, %c: memref<?x?xf16>, %p: memref<4x?x?xf32>, %n: memref<?x?xi32>) {
  frag.matmul %a, %b into %c through %p, %n {split_k = 0 : i64} : memref<?x?xf16>, memref<?x?xf16> into memref<?x?xf16> through memref<4x?x?xf32>, memref<?x?xi32>
  func.return
}
// -----
// Parts that are lost.
func.func @f(%a: memref<?x?xf16>, %b: memref<?x?xf16>, %c: memref<?x?xf16>, %p: memref<4x?x?xf32>, %n: memref<?x?xi32>) {
  frag.matmul %a, %b into %c {split_k = 2 : i64} : memref<?x?xf16>, memref<?x?xf16> into memref<?x?xf16>
  func.return
}
// -----
// Parts of f32 that f16 does not hold.
func.func @f(%a: memref<?x?xf16>, %b: memref<?x?xf16>, %c: memref<?x?xf16>, %p: memref<4x?x?xf32>, %n: memref<?x?xi32>) {
  frag.matmul %a, %b into %c {split_k = 2 : i64} : memref<?x?xf16>, memref<?x?xf16> into memref<?x?xf16> epilogue {
  ^bb0(%sum: f32, %old: f16):
    %0 = arith.extf %old : f16 to f32
    %1 = arith.addf %sum, %0 : f32
    %2 = arith.truncf %1 : f32 to f16
    frag.yield %2 : f16
  }
  func.return
}
// -----
// Memory for too few parts.
func.func @f(%a: memref<?x?xf16>, %b: memref<?x?xf16>, %c: memref<?x?xf16>, %p: memref<4x?x?xf32>, %n: memref<?x?xi32>) {
  frag.matmul %a, %b into %c through %p, %n {split_k = 5 : i64} : memref<?x?xf16>, memref<?x?xf16> into memref<?x?xf16> through memref<4x?x?xf32>, memref<?x?xi32>
  func.return
}
// -----
// Counts of another type.
func.func @f(%a: memref<?x?xf16>, %b: memref<?x?xf16>, %c: memref<?x?xf16>, %p: memref<4x?x?xf32>, %n: memref<?x?xi64>) {
  frag.matmul %a, %b into %c through %p, %n {split_k = 4 : i64} : memref<?x?xf16>, memref<?x?xf16> into memref<?x?xf16> through memref<4x?x?xf32>, memref<?x?xi64>
  func.return
}
// -----
// Groups of a matrix of B.
func.func @f(%a: memref<?x?xf16>, %b: memref<?x?xf16>, %c: memref<?x?xf32>, %ends: memref<?xi32>) {
  frag.matmul %a, %b into %c groups %ends : memref<?x?xf16>, memref<?x?xf16> into memref<?x?xf32> groups memref<?xi32>
  func.return
}
// -----
// Fewer groups than matrices.
func.func @f(%a: memref<?x?xf16>, %b: memref<8x?x?xf16>, %c: memref<?x?xf32>, %ends: memref<7xi32>) {
  frag.matmul %a, %b into %c groups %ends : memref<?x?xf16>, memref<8x?x?xf16> into memref<?x?xf32> groups memref<7xi32>
  func.return
}
// -----
// Groups and parts.
func.func @f(%a: memref<?x?xf16>, %b: memref<8x?x?xf16>, %c: memref<?x?xf32>, %ends: memref<8xi32>, %p: memref<2x?x?xf32>, %n: memref<?x?xi32>) {
  frag.matmul %a, %b into %c groups %ends through %p, %n {split_k = 2 : i64} : memref<?x?xf16>, memref<8x?x?xf16> into memref<?x?xf32> groups memref<8xi32> through memref<2x?x?xf32>, memref<?x?xi32>
  func.return
}
