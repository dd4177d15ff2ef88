// RUN: -p frag-place
// -----
// No such dimension.
func.func @f(%x: memref<8x32xf32>) {
  %0 = frag.load %x[0, 0] : memref<8x32xf32> -> !frag.tile<8x32xf32>
  %1 = frag.reduce_by dim 2 %0 : !frag.tile<8x32xf32> -> !frag.tile<8xf32> {
  ^bb0(%v: f32, %w: f32):
    frag.yield %v : f32
  }
  func.return
}
// -----
// The other dimension goes.
func.func @f(%x: memref<8x32xf32>) {
  %0 = frag.load %x[0, 0] : memref<8x32xf32> -> !frag.tile<8x32xf32>
  %1 = frag.reduce_by dim 1 %0 : !frag.tile<8x32xf32> -> !frag.tile<32xf32> {
  ^bb0(%v: f32, %w: f32):
    frag.yield %v : f32
  }
  func.return
}
// -----
// Two elements of each tile.
func.func @f(%x: memref<8x32xf32>) {
  %0 = frag.load %x[0, 0] : memref<8x32xf32> -> !frag.tile<8x32xf32>
  %1 = frag.reduce_by dim 1 %0 : !frag.tile<8x32xf32> -> !frag.tile<8xf32> {
  ^bb0(%v: f32):
    frag.yield %v : f32
  }
  func.return
}
// -----
// One value for each tile.
func.func @f(%x: memref<8x32xf32>) {
  %0 = frag.load %x[0, 0] : memref<8x32xf32> -> !frag.tile<8x32xf32>
  %1 = frag.reduce_by dim 1 %0 : !frag.tile<8x32xf32> -> !frag.tile<8xf32> {
  ^bb0(%v: f32, %w: f32):
    frag.yield %v, %w : f32, f32
  }
  func.return
}
// -----
// Tiles of one shape.
func.func @f(%x: memref<8x32xf32>) {
  %0 = frag.load %x[0, 0] : memref<8x32xf32> -> !frag.tile<8x32xf32>
  %2 = frag.iota dim 0 : !frag.tile<32xi32>
  %1, %3 = frag.reduce_by dim 0 %0, %2 : !frag.tile<8x32xf32>, !frag.tile<32xi32> -> !frag.tile<32xf32>, i32 {
  ^bb0(%v: f32, %i: i32, %w: f32, %j: i32):
    frag.yield %v, %i : f32, i32
  }
  func.return
}
// -----
// No arithmetic in 8 bits.
func.func @f(%x: memref<8x32xui8>) {
  %0 = frag.load %x[0, 0] : memref<8x32xui8> -> !frag.tile<8x32xui8>
  %1 = frag.reduce_by dim 1 %0 : !frag.tile<8x32xui8> -> !frag.tile<8xui8> {
  ^bb0(%v: ui8, %w: ui8):
    frag.yield %v : ui8
  }
  func.return
}
// -----
// Nothing to combine.
func.func @f() {
  "frag.reduce_by"() <{dim = 0 : i64}> ({
    "frag.yield"() : () -> ()
  }) : () -> ()
  func.return
}
