// RUN: -p frag-raster
// -----
// A grid that is not one block a tile.
func.func @f(%c: memref<?x512xf32> {frag.sizes = ["m"]}) attributes {frag.grid = #frag.grid<2, 2>} {
  frag.for_tiles (%row, %col) of (256, 512) by (64, 256) {
  }
  func.return
}
// -----
// Sizes that no launch knows.
func.func @f(%m: index) {
  frag.for_tiles (%row, %col) of (%m, 512) by (64, 256) {
  }
  func.return
}
// -----
// A grid of two dimensions for a persistent loop.
func.func @f() attributes {frag.grid = #frag.grid<2, 2>} {
  frag.for_tiles (%row, %col) of (256, 512) by (64, 256) persistent {
  }
  func.return
}
// -----
// Two loops that take different grids.
func.func @f() {
  frag.for_tiles (%row, %col) of (256, 512) by (64, 256) {
  }
  frag.for_tiles (%row, %col) of (256, 512) by (64, 128) {
  }
  func.return
}
