// RUN: 
// Loops over tiles: extents that are values and numbers, every order, persistent, in clusters, of
// batches; the number of blocks; grids of products and of as many blocks as run at once.
func.func @f(%a: memref<?x?xf32>) attributes {frag.grid = #frag.grid<m by 128 * n by 256>} {
  %c0 = arith.constant 0 : index
  %m = memref.dim %a, %c0 : memref<?x?xf32>
  frag.for_tiles (%row, %col) of (%m, 512) by (128, 256) {
    %x = arith.addi %row, %col : index
  }
  frag.for_tiles (%row, %col) of (%m, 512) by (128, 256) rows {
  }
  frag.for_tiles (%row, %col) of (%m, 512) by (128, 256) columns persistent {
  }
  frag.for_tiles (%row, %col) of (1024, 512) by (128, 256) grouped persistent {
  }
  frag.for_tiles (%row, %col) of (%m, %m) by (128, 256) grouped 8 persistent cluster 2 {
  }
  frag.for_tiles (%matrix, %row, %col) of (4, %m, %m) by (1, 128, 256) hilbert attributes {"name"} {
  }
  %blocks = frag.grid_size x
  func.return
}

func.func @persistent()
    attributes {frag.grid = #frag.grid<m by 256 * n by 256 * 2 at most resident cluster 2>} {
  func.return
}

func.func @one() attributes {frag.grid = #frag.grid<m by 256 at most resident>} {
  func.return
}

// Of the tiles of a block the second one of every three.
func.func @dealt_out(%m: index, %c: memref<?xi32>) attributes {frag.grid = #frag.grid<m by 64 at most resident>} {
  frag.for_tiles (%row, %col) of (%m, 64) by (64, 64) rows persistent share 1 of 3 {
    %x = arith.addi %row, %col : index
  }
  func.return
}

// Sums in parts: two of each tile; equal shares of all steps, in at most three parts; of a batch.
func.func @in_parts(%m: index, %k: index, %c: memref<?x64xi32>) attributes {frag.grid = #frag.grid<m by 64 at most resident>} {
  frag.for_tiles (%row, %col) along (%from, %to, %part, %parts) of (%m, 64, %k) by (64, 64, 32) split 2 {
    %x = arith.addi %from, %part : index
  }
  frag.for_tiles (%row, %col) along (%from, %to, %part, %parts) of (%m, 64, 100) by (64, 64, 32) grouped 4 persistent cluster 2 even 3 {
    %x = arith.addi %to, %parts : index
  }
  frag.for_tiles (%i, %j, %row, %col) along (%from, %to, %part, %parts) of (2, %m, %m, 64, %k) by (1, 1, 64, 64, 32) persistent share 0 of 2 split 4 {
  }
  func.return
}

// Rows in groups, which end where memory says.
func.func @groups(%c: memref<?x64xi32>, %ends: memref<?xi32>, %m: index) attributes {frag.grid = #frag.grid<m by 64 at most resident>} {
  frag.for_tiles (%row, %col) within (%group, %end) of (%m, 64) by (64, 64) grouped persistent groups %ends : memref<?xi32> {
    %own = frag.head %c to %end : memref<?x64xi32>
  }
  frag.for_tiles (%row, %col) within (%group, %end) of (%m, 64) by (64, 64) persistent share 0 of 2 groups %ends : memref<?xi32> attributes {"name"} {
  }
  func.return
}
