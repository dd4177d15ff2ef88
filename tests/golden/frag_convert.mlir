// RUN: -p frag-place
// From accumulator to operand, and to a layout that is written out.
func.func @f(%a: memref<16x16xf16>) {
  %0 = frag.load %a[0, 0] : memref<16x16xf16> -> !frag.tile<16x16xf16, #frag.mma<m16n8k16.f16, c>>
  %1 = frag.convert %0 : !frag.tile<16x16xf16, #frag.mma<m16n8k16.f16, c>> -> !frag.tile<16x16xf16, #frag.mma<m16n8k16.f16, a>>
  %2 = frag.convert %1 : !frag.tile<16x16xf16, #frag.mma<m16n8k16.f16, a>> -> !frag.tile<16x16xf16, #frag.layout<"lane [16:(1,0) 2:(0,8)] element [8:(0,1)]">>
  func.return
}
