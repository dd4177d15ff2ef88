// RUN: -p frag-place
// The largest of each row and its place, of the accumulator of a product.
func.func @a(%x: memref<32x32xf32>, %y: memref<32xf32>, %z: memref<32xi32>) attributes {frag.warps = array<i64: 2, 2>} {
  %0 = frag.load %x[0, 0] : memref<32x32xf32> -> !frag.tile<32x32xf32, #frag.mma<m16n8k16.f16, c, warps = [2, 2]>>
  %1 = frag.iota dim 1 : !frag.tile<32x32xi32, #frag.mma<m16n8k16.f16, c, warps = [2, 2]>>
  %2, %3 = frag.reduce_by dim 1 %0, %1 {note = "kept"} : !frag.tile<32x32xf32, #frag.mma<m16n8k16.f16, c, warps = [2, 2]>>, !frag.tile<32x32xi32, #frag.mma<m16n8k16.f16, c, warps = [2, 2]>> -> !frag.tile<32xf32>, !frag.tile<32xi32> {
  ^bb0(%v: f32, %i: i32, %w: f32, %j: i32):
    %4 = arith.cmpf ogt, %w, %v : f32
    %5 = arith.select %4, %w, %v : f32
    %6 = arith.select %4, %j, %i : i32
    frag.yield %5, %6 : f32, i32
  }
  frag.store %2, %y[0] : !frag.tile<32xf32>, memref<32xf32>
  frag.store %3, %z[0] : !frag.tile<32xi32>, memref<32xi32>
  func.return
}
// Numbers are left of one dimension; in the general form.
func.func @b(%x: memref<64xi32>, %y: memref<1xi32>) {
  %0 = frag.load %x[0] : memref<64xi32> -> !frag.tile<64xi32>
  %1 = "frag.reduce_by"(%0) <{dim = 0 : i64}> ({
  ^bb0(%v: i32, %w: i32):
    %2 = arith.xori %v, %w : i32
    "frag.yield"(%2) : (i32) -> ()
  }) : (!frag.tile<64xi32>) -> i32
  %3 = frag.fill %1 : !frag.tile<1xi32>
  frag.store %3, %y[0] : !frag.tile<1xi32>, memref<1xi32>
  func.return
}
