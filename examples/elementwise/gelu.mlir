// GELU of vectors of any length, f16 computed in f32: exactly, x/2 (1 + erf(x / sqrt 2)), and by the
// tanh that stands for it, x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))).
//
//   fragir run examples/elementwise/gelu.mlir --entry gelu --size n=5001
//   fragir run examples/elementwise/gelu.mlir --entry gelu_tanh --size n=5001

!part = !frag.tile<1024xf16>

func.func @gelu(%x: memref<?xf16> {frag.sizes = ["n"]}, %y: memref<?xf16> {frag.sizes = ["n"]})
    attributes {frag.grid = #frag.grid<n by 1024>, frag.warps = array<i64: 4, 1>} {
  %1024 = arith.constant 1024 : index
  %b = frag.block_id x
  %at = arith.muli %b, %1024 : index
  %t = frag.load %x[%at] masked : memref<?xf16> -> !part
  %out = frag.map %t : !part -> !part {
  ^bb0(%v: f16):
    %half = arith.constant 0.5 : f32
    %one = arith.constant 1.0 : f32
    %root = arith.constant 0.70710678118654752 : f32
    %f = arith.extf %v : f16 to f32
    %g = arith.mulf %f, %root : f32
    %e = math.erf %g : f32
    %s = arith.addf %one, %e : f32
    %h = arith.mulf %half, %f : f32
    %p = arith.mulf %h, %s : f32
    %r = arith.truncf %p : f32 to f16
    frag.yield %r : f16
  }
  frag.store %out, %y[%at] masked : !part, memref<?xf16>
  func.return
}

func.func @gelu_tanh(%x: memref<?xf16> {frag.sizes = ["n"]},
                     %y: memref<?xf16> {frag.sizes = ["n"]})
    attributes {frag.grid = #frag.grid<n by 1024>, frag.warps = array<i64: 4, 1>} {
  %1024 = arith.constant 1024 : index
  %b = frag.block_id x
  %at = arith.muli %b, %1024 : index
  %t = frag.load %x[%at] masked : memref<?xf16> -> !part
  %out = frag.map %t : !part -> !part {
  ^bb0(%v: f16):
    %half = arith.constant 0.5 : f32
    %one = arith.constant 1.0 : f32
    %cubic = arith.constant 0.044715 : f32
    %root = arith.constant 0.79788456080286536 : f32
    %f = arith.extf %v : f16 to f32
    %square = arith.mulf %f, %f : f32
    %factor = math.fma %square, %cubic, %one : f32
    %g = arith.mulf %f, %factor : f32
    %inner = arith.mulf %g, %root : f32
    %e = math.tanh %inner : f32
    %s = arith.addf %one, %e : f32
    %h = arith.mulf %half, %f : f32
    %p = arith.mulf %h, %s : f32
    %r = arith.truncf %p : f32 to f16
    frag.yield %r : f16
  }
  frag.store %out, %y[%at] masked : !part, memref<?xf16>
  func.return
}
