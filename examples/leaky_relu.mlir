// A vector, and a mask: y = x where x > 0, else s * x, on any number of values. Tiles have one to
// four dimensions; a tile of i1 holds truth values in predicate registers. A block of four warps
// takes 512 values.
//
//   fragir run examples/leaky_relu.mlir --size n=1300 --arg s=0.125

!values = !frag.tile<512xf32>
!mask = !frag.tile<512xi1>

func.func @leaky_relu(%x: memref<?xf32> {frag.sizes = ["n"]}, %y: memref<?xf32> {frag.sizes = ["n"]},
                      %s: f32)
    attributes {frag.grid = #frag.grid<n by 512>, frag.warps = array<i64: 4, 1>} {
  %512 = arith.constant 512 : index
  %bx = frag.block_id x
  %i = arith.muli %bx, %512 : index
  %in = frag.load %x[%i] masked : memref<?xf32> -> !values
  %positive = frag.map %in : !values -> !mask {
  ^bb0(%v: f32):
    %zero = arith.constant 0.0 : f32
    %p = arith.cmpf ogt, %v, %zero : f32
    frag.yield %p : i1
  }
  %out = frag.map %in, %positive : !values, !mask -> !values {
  ^bb0(%v: f32, %p: i1):
    %scaled = arith.mulf %v, %s : f32
    %result = arith.select %p, %v, %scaled : f32
    frag.yield %result : f32
  }
  frag.store %out, %y[%i] masked : !values, memref<?xf32>
  func.return
}
