// RUN: 
// -----
// One dimension.
func.func @f() {
  frag.for_tiles (%row) of (128) by (64) {
  }
  func.return
}
// -----
// As many values as dimensions.
func.func @f() {
  frag.for_tiles (%row, %col, %third) of (128, 64) by (64, 64) {
  }
  func.return
}
// -----
// A tile has a size in every dimension.
func.func @f() {
  frag.for_tiles (%row, %col) of (128, 64) by (64) {
  }
  func.return
}
// -----
// An empty tile.
func.func @f() {
  frag.for_tiles (%row, %col) of (128, 64) by (64, 0) {
  }
  func.return
}
// -----
// A matrix of fewer than no rows.
func.func @f() {
  frag.for_tiles (%row, %col) of (-1, 64) by (64, 64) {
  }
  func.return
}
// -----
// An order that there is not.
func.func @f() {
  frag.for_tiles (%row, %col) of (128, 64) by (64, 64) diagonal {
  }
  func.return
}
// -----
// The same in the generic form.
func.func @f() {
  "frag.for_tiles"() <{operandSegmentSizes = array<i32: 0, 0>, order = "diagonal", static_extents = array<i64: 64, 64>, tile = array<i64: 64, 64>}> ({
  ^bb0(%row: index, %col: index):
  }) : () -> ()
  func.return
}
// -----
// A group of no rows.
func.func @f() {
  frag.for_tiles (%row, %col) of (128, 64) by (64, 64) grouped 0 {
  }
  func.return
}
// -----
// Only grouped has groups.
func.func @f() {
  frag.for_tiles (%row, %col) of (128, 64) by (64, 64) hilbert 8 {
  }
  func.return
}
// -----
// A cluster too large.
func.func @f() {
  frag.for_tiles (%row, %col) of (128, 64) by (64, 64) cluster 32 {
  }
  func.return
}
// -----
// A loop in a loop.
func.func @f() {
  frag.for_tiles (%row, %col) of (128, 64) by (64, 64) {
    frag.for_tiles (%r, %c) of (128, 64) by (64, 64) {
    }
  }
  func.return
}
// -----
// Extents are of type index.
func.func @f(%m: i32) {
  frag.for_tiles (%row, %col) of (%m, 64) by (64, 64) {
  }
  func.return
}
// -----
// Tiles do not leave the loop.
func.func @f() {
  frag.for_tiles (%row, %col) of (128, 64) by (64, 64) {
    %x = arith.addi %row, %col : index
  }
  %y = arith.addi %x, %x : index
  func.return
}
// -----
// A cluster of no block.
func.func @f() attributes {frag.grid = #frag.grid<m at most resident cluster 0>} {
  func.return
}
// -----
// As many blocks as run at once, along two dimensions.
func.func @f() attributes {frag.grid = #frag.grid<m at most resident, n>} {
  func.return
}
// -----
// Half a limit.
func.func @f() attributes {frag.grid = #frag.grid<m at most>} {
  func.return
}
// -----
// A share that is none of them.
func.func @f(%m: index) {
  frag.for_tiles (%row, %col) of (%m, 64) by (64, 64) persistent share 2 of 2 {
  }
  func.return
}
// -----
// Shares of a loop that has one tile a block.
func.func @f(%m: index) {
  frag.for_tiles (%row, %col) of (%m, 64) by (64, 64) share 0 of 2 {
  }
  func.return
}
// -----
// A sum in parts has four values.
func.func @f(%k: index) {
  frag.for_tiles (%row, %col) along (%from, %to) of (128, 64, %k) by (64, 64, 32) split 2 {
  }
  func.return
}
// -----
// Parts without saying how many.
func.func @f(%k: index) {
  frag.for_tiles (%row, %col) along (%from, %to, %part, %parts) of (128, 64, %k) by (64, 64, 32) {
  }
  func.return
}
// -----
// Parts of no sum.
func.func @f() {
  frag.for_tiles (%row, %col) of (128, 64) by (64, 64) split 2 {
  }
  func.return
}
// -----
// Even shares of a grid with a block for each tile.
func.func @f(%k: index) {
  frag.for_tiles (%row, %col) along (%from, %to, %part, %parts) of (128, 64, %k) by (64, 64, 32) even 2 {
  }
  func.return
}
// -----
// One part at most, of even shares.
func.func @f(%k: index) {
  frag.for_tiles (%row, %col) along (%from, %to, %part, %parts) of (128, 64, %k) by (64, 64, 32) persistent even 1 {
  }
  func.return
}
// -----
// The generic form: steps without parts.
func.func @f() {
  "frag.for_tiles"() <{operandSegmentSizes = array<i32: 0, 0>, static_extents = array<i64: 64, 64, 64>, tile = array<i64: 64, 64>, step = 32 : i64}> ({
  ^bb0(%row: index, %col: index):
  }) : () -> ()
  func.return
}
// -----
// Six dimensions.
func.func @f() {
  frag.for_tiles (%a, %b, %c, %d, %e, %f) of (1, 1, 1, 1, 64, 64) by (1, 1, 1, 1, 64, 64) {
  }
  func.return
}
// -----
// Groups without what tells a tile's.
func.func @f(%ends: memref<?xi32>) {
  frag.for_tiles (%row, %col) of (128, 64) by (64, 64) persistent groups %ends : memref<?xi32> {
  }
  func.return
}
// -----
// Ends of another type.
func.func @f(%ends: memref<?xf32>) {
  frag.for_tiles (%row, %col) within (%group, %end) of (128, 64) by (64, 64) persistent groups %ends : memref<?xf32> {
  }
  func.return
}
// -----
// A block for each tile, of which a launch does not know how many there are.
func.func @f(%ends: memref<?xi32>) {
  frag.for_tiles (%row, %col) within (%group, %end) of (128, 64) by (64, 64) groups %ends : memref<?xi32> {
  }
  func.return
}
