// Any layout, written out. A layout says for every axis of the hardware (warp, lane, element) which
// steps in (row, column) its coordinate takes: `4:(0,2)` is four values, two columns apart.
//
// @transpose: a 16x16 matrix is loaded with rows spread over lanes and stored with columns spread
// over lanes: D is A transposed in memory. frag.convert between the two layouts moves elements
// between lanes.
// @fragments: the layout of m16n8k16's operand A, spelled out. It is the same layout as
// #frag.mma<m16n8k16.f16, a>, so frag.mma takes it without a conversion: that one only renames.
//
//   fragir run examples/explicit_layout.mlir --entry transpose

#rows = #frag.layout<"lane [16:(1,0) 2:(0,8)] element [8:(0,1)]">
#cols = #frag.layout<"lane [16:(0,1) 2:(8,0)] element [8:(1,0)]">

func.func @transpose(%a: memref<16x16xf16>, %d: memref<16x16xf16>) {
  %0 = frag.load %a[0, 0] : memref<16x16xf16> -> !frag.tile<16x16xf16, #rows>
  %1 = frag.convert %0 : !frag.tile<16x16xf16, #rows> -> !frag.tile<16x16xf16, #cols>
  frag.store %1, %d[0, 0] transposed : !frag.tile<16x16xf16, #cols>, memref<16x16xf16>
  func.return
}

#a = #frag.layout<"lane [4:(0,2) 8:(1,0)] element [2:(0,1) 2:(8,0) 2:(0,8)]">

func.func @fragments(%a: memref<16x16xf16>, %b: memref<16x8xf16>, %d: memref<16x8xf32>) {
  %0 = frag.load %a[0, 0] : memref<16x16xf16> -> !frag.tile<16x16xf16, #a>
  %1 = frag.convert %0 : !frag.tile<16x16xf16, #a> -> !frag.tile<16x16xf16, #frag.mma<m16n8k16.f16, a>>
  %2 = frag.load %b[0, 0] : memref<16x8xf16> -> !frag.tile<16x8xf16>
  %zero = arith.constant 0.0 : f32
  %3 = frag.fill %zero : !frag.tile<16x8xf32>
  %4 = frag.mma %1, %2, %3 : !frag.tile<16x16xf16, #frag.mma<m16n8k16.f16, a>>, !frag.tile<16x8xf16>, !frag.tile<16x8xf32> -> !frag.tile<16x8xf32>
  frag.store %4, %d[0, 0] : !frag.tile<16x8xf32>, memref<16x8xf32>
  func.return
}
