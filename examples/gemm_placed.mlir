// Two small products with every layout written out, as `frag-place` would leave it: D = (A B) B, all
// 32x32, by four warps. The first product leaves A B in the layout of the accumulator; the second
// wants it in that of operand A, so it is rounded to f16 and converted.
//
// `#frag.mma<m16n8k16.f16, c, warps = [2, 2]>`: C of m16n8k16, repeated over a tile that 2 x 2 warps
// share. Operand A is the same for the two warps of a block row, B for those of a block column. The
// accumulator of a warp covers 16 of 32 columns, operand A all 32: frag.convert must move elements
// between warps, through shared memory. (With one warp the same conversion only renames registers.)
//
//   fragir run examples/gemm_placed.mlir
//   fragir-opt -p 'convert-frag-to-ptx{target=sm_80}' examples/gemm_placed.mlir

#a = #frag.mma<m16n8k16.f16, a, warps = [2, 2]>
#b = #frag.mma<m16n8k16.f16, b, warps = [2, 2]>
#c = #frag.mma<m16n8k16.f16, c, warps = [2, 2]>
!a = !frag.tile<32x32xf16, #a>
!b = !frag.tile<32x32xf16, #b>
!c = !frag.tile<32x32xf32, #c>
!c16 = !frag.tile<32x32xf16, #c>

func.func @gemm_placed(%a: memref<32x32xf16>, %b: memref<32x32xf16>, %d: memref<32x32xf32>) attributes {frag.warps = array<i64: 2, 2>} {
  %ta = frag.load %a[0, 0] : memref<32x32xf16> -> !a
  %tb = frag.load %b[0, 0] : memref<32x32xf16> -> !b
  %zero = arith.constant 0.0 : f32
  %none = frag.fill %zero : !c
  %ab = frag.mma %ta, %tb, %none : !a, !b, !c -> !c
  %rounded = frag.cast %ab : !c -> !c16
  %again = frag.convert %rounded : !c16 -> !a
  %abb = frag.mma %again, %tb, %none : !a, !b, !c -> !c
  frag.store %abb, %d[0, 0] : !c, memref<32x32xf32>
  func.return
}
