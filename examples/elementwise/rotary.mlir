// Rotary embedding: pairs of a head's elements are turned by an angle of their row (position):
// (a, b) becomes (a cos - b sin, a sin + b cos). Rows x heads x dimension, any sizes; f16, computed
// in f32. Which elements are a pair is a matter of how the array is seen: element j of the first
// half and of the second (rows x heads x 2 x pairs; GPT-NeoX, Llama), or two neighbours (rows x
// heads x pairs x 2; GPT-J). Angles come as cos and sin, rows x pairs. The derivative is the same
// with -sin.
//
//   fragir run examples/elementwise/rotary.mlir --entry halves --size s=9,h=3,d=40
//   fragir run examples/elementwise/rotary.mlir --entry neighbours --size s=9,h=3,d=40

!halves = !frag.tile<4x4x2x64xf16>
!pairs = !frag.tile<4x4x64x2xf16>
!one = !frag.tile<4x4x64xf16>
!angles = !frag.tile<4x64xf32>
!spread = !frag.tile<4x4x64xf32>

func.func @halves(%x: memref<?x?x2x?xf16> {frag.sizes = ["s", "h", "2", "d"]},
                  %cos: memref<?x?xf32> {frag.sizes = ["s", "d"]},
                  %sin: memref<?x?xf32> {frag.sizes = ["s", "d"]},
                  %y: memref<?x?x2x?xf16> {frag.sizes = ["s", "h", "2", "d"]})
    attributes {frag.grid = #frag.grid<d by 64, h by 4, s by 4>, frag.warps = array<i64: 4, 1>} {
  %4 = arith.constant 4 : index
  %64 = arith.constant 64 : index
  %bx = frag.block_id x
  %by = frag.block_id y
  %bz = frag.block_id z
  %j = arith.muli %bx, %64 : index
  %head = arith.muli %by, %4 : index
  %row = arith.muli %bz, %4 : index
  %t = frag.load %x[%row, %head, 0, %j] masked : memref<?x?x2x?xf16> -> !halves
  %both = frag.transpose %t [0, 1, 3, 2] : !halves -> !pairs
  %a, %b = frag.split %both : !pairs -> !one, !one
  %c = frag.load %cos[%row, %j] masked : memref<?x?xf32> -> !angles
  %s = frag.load %sin[%row, %j] masked : memref<?x?xf32> -> !angles
  %ct = frag.broadcast %c along 1 : !angles -> !spread
  %st = frag.broadcast %s along 1 : !angles -> !spread
  %u = frag.map %a, %b, %ct, %st : !one, !one, !spread, !spread -> !one {
  ^bb0(%p: f16, %q: f16, %cosine: f32, %sine: f32):
    %f = arith.extf %p : f16 to f32
    %g = arith.extf %q : f16 to f32
    %fc = arith.mulf %f, %cosine : f32
    %gs = arith.mulf %g, %sine : f32
    %d = arith.subf %fc, %gs : f32
    %r = arith.truncf %d : f32 to f16
    frag.yield %r : f16
  }
  %v = frag.map %a, %b, %ct, %st : !one, !one, !spread, !spread -> !one {
  ^bb0(%p: f16, %q: f16, %cosine: f32, %sine: f32):
    %f = arith.extf %p : f16 to f32
    %g = arith.extf %q : f16 to f32
    %fs = arith.mulf %f, %sine : f32
    %gc = arith.mulf %g, %cosine : f32
    %d = arith.addf %fs, %gc : f32
    %r = arith.truncf %d : f32 to f16
    frag.yield %r : f16
  }
  %turned = frag.join %u, %v : !one, !one -> !pairs
  %out = frag.transpose %turned [0, 1, 3, 2] : !pairs -> !halves
  frag.store %out, %y[%row, %head, 0, %j] masked : !halves, memref<?x?x2x?xf16>
  func.return
}

func.func @neighbours(%x: memref<?x?x?x2xf16> {frag.sizes = ["s", "h", "d"]},
                      %cos: memref<?x?xf32> {frag.sizes = ["s", "d"]},
                      %sin: memref<?x?xf32> {frag.sizes = ["s", "d"]},
                      %y: memref<?x?x?x2xf16> {frag.sizes = ["s", "h", "d"]})
    attributes {frag.grid = #frag.grid<d by 64, h by 4, s by 4>, frag.warps = array<i64: 4, 1>} {
  %4 = arith.constant 4 : index
  %64 = arith.constant 64 : index
  %bx = frag.block_id x
  %by = frag.block_id y
  %bz = frag.block_id z
  %j = arith.muli %bx, %64 : index
  %head = arith.muli %by, %4 : index
  %row = arith.muli %bz, %4 : index
  %t = frag.load %x[%row, %head, %j, 0] masked : memref<?x?x?x2xf16> -> !pairs
  %a, %b = frag.split %t : !pairs -> !one, !one
  %c = frag.load %cos[%row, %j] masked : memref<?x?xf32> -> !angles
  %s = frag.load %sin[%row, %j] masked : memref<?x?xf32> -> !angles
  %ct = frag.broadcast %c along 1 : !angles -> !spread
  %st = frag.broadcast %s along 1 : !angles -> !spread
  %u = frag.map %a, %b, %ct, %st : !one, !one, !spread, !spread -> !one {
  ^bb0(%p: f16, %q: f16, %cosine: f32, %sine: f32):
    %f = arith.extf %p : f16 to f32
    %g = arith.extf %q : f16 to f32
    %fc = arith.mulf %f, %cosine : f32
    %gs = arith.mulf %g, %sine : f32
    %d = arith.subf %fc, %gs : f32
    %r = arith.truncf %d : f32 to f16
    frag.yield %r : f16
  }
  %v = frag.map %a, %b, %ct, %st : !one, !one, !spread, !spread -> !one {
  ^bb0(%p: f16, %q: f16, %cosine: f32, %sine: f32):
    %f = arith.extf %p : f16 to f32
    %g = arith.extf %q : f16 to f32
    %fs = arith.mulf %f, %sine : f32
    %gc = arith.mulf %g, %cosine : f32
    %d = arith.addf %fs, %gc : f32
    %r = arith.truncf %d : f32 to f16
    frag.yield %r : f16
  }
  %turned = frag.join %u, %v : !one, !one -> !pairs
  frag.store %turned, %y[%row, %head, %j, 0] masked : !pairs, memref<?x?x?x2xf16>
  func.return
}
