// z = x + y for vectors of any length, f32 and f16. A block of four warps adds 2048 elements; all but
// the last block have all of them, and move 16 bytes at a time: what a mask would have to ask of
// each element is asked once of the block.
//
//   fragir run examples/elementwise/vector_add.mlir --entry add_f32 --size n=5000

!part = !frag.tile<2048xf32>
!half = !frag.tile<2048xf16>

func.func @add_f32(%x: memref<?xf32> {frag.sizes = ["n"]}, %y: memref<?xf32> {frag.sizes = ["n"]},
                   %z: memref<?xf32> {frag.sizes = ["n"]})
    attributes {frag.grid = #frag.grid<n by 2048>, frag.warps = array<i64: 4, 1>} {
  %0 = arith.constant 0 : index
  %2048 = arith.constant 2048 : index
  %n = memref.dim %x, %0 : memref<?xf32>
  %b = frag.block_id x
  %at = arith.muli %b, %2048 : index
  %end = arith.addi %at, %2048 : index
  %whole = arith.cmpi sle, %end, %n : index
  scf.if %whole {
    %u = frag.load %x[%at] : memref<?xf32> -> !part
    %v = frag.load %y[%at] : memref<?xf32> -> !part
    %w = frag.map %u, %v : !part, !part -> !part {
    ^bb0(%p: f32, %q: f32):
      %r = arith.addf %p, %q : f32
      frag.yield %r : f32
    }
    frag.store %w, %z[%at] : !part, memref<?xf32>
  } else {
    %u = frag.load %x[%at] masked : memref<?xf32> -> !part
    %v = frag.load %y[%at] masked : memref<?xf32> -> !part
    %w = frag.map %u, %v : !part, !part -> !part {
    ^bb0(%p: f32, %q: f32):
      %r = arith.addf %p, %q : f32
      frag.yield %r : f32
    }
    frag.store %w, %z[%at] masked : !part, memref<?xf32>
  }
  func.return
}

func.func @add_f16(%x: memref<?xf16> {frag.sizes = ["n"]}, %y: memref<?xf16> {frag.sizes = ["n"]},
                   %z: memref<?xf16> {frag.sizes = ["n"]})
    attributes {frag.grid = #frag.grid<n by 2048>, frag.warps = array<i64: 4, 1>} {
  %0 = arith.constant 0 : index
  %2048 = arith.constant 2048 : index
  %n = memref.dim %x, %0 : memref<?xf16>
  %b = frag.block_id x
  %at = arith.muli %b, %2048 : index
  %end = arith.addi %at, %2048 : index
  %whole = arith.cmpi sle, %end, %n : index
  scf.if %whole {
    %u = frag.load %x[%at] : memref<?xf16> -> !half
    %v = frag.load %y[%at] : memref<?xf16> -> !half
    %w = frag.map %u, %v : !half, !half -> !half {
    ^bb0(%p: f16, %q: f16):
      %r = arith.addf %p, %q : f16
      frag.yield %r : f16
    }
    frag.store %w, %z[%at] : !half, memref<?xf16>
  } else {
    %u = frag.load %x[%at] masked : memref<?xf16> -> !half
    %v = frag.load %y[%at] masked : memref<?xf16> -> !half
    %w = frag.map %u, %v : !half, !half -> !half {
    ^bb0(%p: f16, %q: f16):
      %r = arith.addf %p, %q : f16
      frag.yield %r : f16
    }
    frag.store %w, %z[%at] masked : !half, memref<?xf16>
  }
  func.return
}
