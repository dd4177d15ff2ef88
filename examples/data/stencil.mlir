// One step of the heat equation on a grid of any size: y = x + a (what the four neighbours have more),
// zero all around. The tile is read five times, shifted by one; what lies outside of the grid, before
// its first row and column too, is masked and reads as zero.
//
//   fragir run examples/data/stencil.mlir --size m=50,n=131 --arg a=0.2

!tile = !frag.tile<16x64xf32>

func.func @stencil(%x: memref<?x?xf32> {frag.sizes = ["m", "n"]},
                   %y: memref<?x?xf32> {frag.sizes = ["m", "n"]}, %a: f32)
    attributes {frag.grid = #frag.grid<n by 64, m by 16>, frag.warps = array<i64: 4, 1>} {
  %1 = arith.constant 1 : index
  %16 = arith.constant 16 : index
  %64 = arith.constant 64 : index
  %bx = frag.block_id x
  %by = frag.block_id y
  %col = arith.muli %bx, %64 : index
  %row = arith.muli %by, %16 : index
  %above = arith.subi %row, %1 : index
  %below = arith.addi %row, %1 : index
  %before = arith.subi %col, %1 : index
  %behind = arith.addi %col, %1 : index
  %here = frag.load %x[%row, %col] masked : memref<?x?xf32> -> !tile
  %n = frag.load %x[%above, %col] masked : memref<?x?xf32> -> !tile
  %s = frag.load %x[%below, %col] masked : memref<?x?xf32> -> !tile
  %w = frag.load %x[%row, %before] masked : memref<?x?xf32> -> !tile
  %e = frag.load %x[%row, %behind] masked : memref<?x?xf32> -> !tile
  %r = frag.map %here, %n, %s, %w, %e : !tile, !tile, !tile, !tile, !tile -> !tile {
  ^bb0(%v: f32, %vn: f32, %vs: f32, %vw: f32, %ve: f32):
    %four = arith.constant 4.0 : f32
    %columns = arith.addf %vn, %vs : f32
    %rows = arith.addf %vw, %ve : f32
    %around = arith.addf %columns, %rows : f32
    %own = arith.mulf %four, %v : f32
    %more = arith.subf %around, %own : f32
    %step = arith.mulf %a, %more : f32
    %next = arith.addf %v, %step : f32
    frag.yield %next : f32
  }
  frag.store %r, %y[%row, %col] masked : !tile, memref<?x?xf32>
  func.return
}
