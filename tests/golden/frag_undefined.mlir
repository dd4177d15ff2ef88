// RUN: -p frag-place{target=sm_90a}
// An accumulator that the first product sets.
func.func @f(%first: i1) {
  %a = memref.alloc() : memref<64x16xf16, #frag.shared<swizzle = 32>>
  %b = memref.alloc() : memref<8x16xf16, #frag.shared<swizzle = 32>>
  %u = frag.undefined : !frag.tile<64x8xf32>
  %d = frag.wgmma %a, %b transposed, %u if %first : memref<64x16xf16, #frag.shared<swizzle = 32>>, memref<8x16xf16, #frag.shared<swizzle = 32>>, !frag.tile<64x8xf32>
  func.return
}
