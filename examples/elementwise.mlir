// Elementwise work without a product: y = x * sigmoid(x) (SiLU) on a matrix of any size, f16 in and
// out, computed in f32. A block of four warps takes 32x256; no instruction asks for a layout, so
// `frag-place` gives each lane 16 bytes of a row at a time.
//
//   fragir run examples/elementwise.mlir --size m=100,n=300

!tile = !frag.tile<32x256xf16>

func.func @silu(%x: memref<?x?xf16> {frag.sizes = ["m", "n"]},
                %y: memref<?x?xf16> {frag.sizes = ["m", "n"]})
    attributes {frag.grid = #frag.grid<n by 256, m by 32>, frag.warps = array<i64: 4, 1>} {
  %256 = arith.constant 256 : index
  %32 = arith.constant 32 : index
  %bx = frag.block_id x
  %by = frag.block_id y
  %col = arith.muli %bx, %256 : index
  %row = arith.muli %by, %32 : index
  %in = frag.load %x[%row, %col] masked : memref<?x?xf16> -> !tile
  %out = frag.map %in : !tile -> !tile {
  ^bb0(%half: f16):
    %one = arith.constant 1.0 : f32
    %v = arith.extf %half : f16 to f32
    %minus = arith.negf %v : f32
    %e = math.exp %minus : f32
    %down = arith.addf %one, %e : f32
    %silu = arith.divf %v, %down : f32
    %result = arith.truncf %silu : f32 to f16
    frag.yield %result : f16
  }
  frag.store %out, %y[%row, %col] masked : !tile, memref<?x?xf16>
  func.return
}
