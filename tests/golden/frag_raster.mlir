// RUN: -p frag-raster{target=sm_90a}
// A block for each tile: its place in the grid.
func.func @plain(%c: memref<?x40xf32> {frag.sizes = ["m"]}) {
  %c0 = arith.constant 0 : index
  %one = arith.constant 1.0 : f32
  %t = frag.fill %one : !frag.tile<8x16xf32>
  %m = memref.dim %c, %c0 : memref<?x40xf32>
  frag.for_tiles (%row, %col) of (%m, 40) by (8, 16) {
    frag.store %t, %c[%row, %col] masked : !frag.tile<8x16xf32>, memref<?x40xf32>
  }
  func.return
}

// Two blocks of a cluster below each other.
func.func @cluster(%c: memref<?x40xf32> {frag.sizes = ["m"]}) {
  %c0 = arith.constant 0 : index
  %one = arith.constant 1.0 : f32
  %t = frag.fill %one : !frag.tile<8x16xf32>
  %m = memref.dim %c, %c0 : memref<?x40xf32>
  frag.for_tiles (%row, %col) of (%m, 40) by (8, 16) cluster 2 {
    frag.store %t, %c[%row, %col] masked : !frag.tile<8x16xf32>, memref<?x40xf32>
  }
  func.return
}

// Batches, down the columns.
func.func @columns(%c: memref<3x20x40xf32>) {
  %one = arith.constant 1.0 : f32
  %t = frag.fill %one : !frag.tile<8x16xf32>
  frag.for_tiles (%matrix, %row, %col) of (3, 20, 40) by (1, 8, 16) columns {
    frag.store %t, %c[%matrix, %row, %col] masked : !frag.tile<8x16xf32>, memref<3x20x40xf32>
  }
  func.return
}

// Groups of as many rows as read least, persistent.
func.func @grouped(%c: memref<?x?xf32> {frag.sizes = ["m", "n"]}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %one = arith.constant 1.0 : f32
  %t = frag.fill %one : !frag.tile<8x16xf32>
  %m = memref.dim %c, %c0 : memref<?x?xf32>
  %n = memref.dim %c, %c1 : memref<?x?xf32>
  frag.for_tiles (%row, %col) of (%m, %n) by (8, 16) grouped persistent cluster 2 {
    frag.store %t, %c[%row, %col] masked : !frag.tile<8x16xf32>, memref<?x?xf32>
  }
  func.return
}

// A curve through 3 x 3 tiles.
func.func @hilbert(%c: memref<20x40xf32>) {
  %one = arith.constant 1.0 : f32
  %t = frag.fill %one : !frag.tile<8x16xf32>
  frag.for_tiles (%row, %col) of (20, 40) by (8, 16) hilbert {
    frag.store %t, %c[%row, %col] masked : !frag.tile<8x16xf32>, memref<20x40xf32>
  }
  func.return
}
