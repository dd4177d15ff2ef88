// RUN: -p frag-place
!a = memref<128x128xf8E4M3FN, #frag.shared<swizzle = 128>>
!b = memref<64x128xf8E4M3FN, #frag.shared<swizzle = 128>>
!sfa = memref<128x4xf8E8M0FNU, #frag.tensor<scales>>
!sfb = memref<64x4xf8E8M0FNU, #frag.tensor<scales>>
!sum = memref<128x64xf32, #frag.tensor>
!p = memref<128x256x!frag.packed<f4E2M1FN>, #frag.shared<swizzle = 128>>
!q = memref<64x256x!frag.packed<f4E2M1FN>, #frag.shared<swizzle = 128>>
// -----
// Scales of A alone.
func.func @f(%a: !a, %b: !b, %x: !sfa, %d: !sum) {
  frag.tcgen05_mma %a, %b transposed scaled %x into %d : !a, !b scaled !sfa into !sum
  func.return
}
// -----
// Scales in shared memory.
func.func @f(%a: !a, %b: !b, %x: memref<128x4xf8E8M0FNU, #frag.shared>, %y: !sfb, %d: !sum) {
  frag.tcgen05_mma %a, %b transposed scaled %x, %y into %d : !a, !b scaled memref<128x4xf8E8M0FNU, #frag.shared>, !sfb into !sum
  func.return
}
// -----
// Scales of two types.
func.func @f(%a: !a, %b: !b, %x: !sfa, %y: memref<64x4xf8E4M3FN, #frag.tensor<scales>>, %d: !sum) {
  frag.tcgen05_mma %a, %b transposed scaled %x, %y into %d : !a, !b scaled !sfa, memref<64x4xf8E4M3FN, #frag.tensor<scales>> into !sum
  func.return
}
// -----
// No scales.
func.func @f(%a: !a, %b: !b, %x: memref<128x4xf32, #frag.tensor<scales>>, %y: memref<64x4xf32, #frag.tensor<scales>>, %d: !sum) {
  frag.tcgen05_mma %a, %b transposed scaled %x, %y into %d : !a, !b scaled memref<128x4xf32, #frag.tensor<scales>>, memref<64x4xf32, #frag.tensor<scales>> into !sum
  func.return
}
// -----
// B's the other way round.
func.func @f(%a: !a, %b: !b, %x: !sfa, %y: memref<4x64xf8E8M0FNU, #frag.tensor<scales>>, %d: !sum) {
  frag.tcgen05_mma %a, %b transposed scaled %x, %y into %d : !a, !b scaled !sfa, memref<4x64xf8E8M0FNU, #frag.tensor<scales>> into !sum
  func.return
}
// -----
// For 16 of fp8.
func.func @f(%a: !a, %b: !b, %x: memref<128x8xf8E8M0FNU, #frag.tensor<scales>>, %y: memref<64x8xf8E8M0FNU, #frag.tensor<scales>>, %d: !sum) {
  frag.tcgen05_mma %a, %b transposed scaled %x, %y into %d : !a, !b scaled memref<128x8xf8E8M0FNU, #frag.tensor<scales>>, memref<64x8xf8E8M0FNU, #frag.tensor<scales>> into !sum
  func.return
}
// -----
// f16 with scales.
func.func @f(%a: memref<128x128xf16, #frag.shared<swizzle = 128>>, %b: memref<64x128xf16, #frag.shared<swizzle = 128>>, %x: !sfa, %y: !sfb, %d: !sum) {
  frag.tcgen05_mma %a, %b transposed scaled %x, %y into %d : memref<128x128xf16, #frag.shared<swizzle = 128>>, memref<64x128xf16, #frag.shared<swizzle = 128>> scaled !sfa, !sfb into !sum
  func.return
}
// -----
// fp4 without scales.
func.func @f(%a: !p, %b: !q, %d: !sum) {
  frag.tcgen05_mma %a, %b transposed into %d : !p, !q into !sum
  func.return
}
// -----
// fp4, two to a byte along N.
func.func @f(%a: !p, %b: memref<256x64x!frag.packed<f4E2M1FN>, #frag.shared<swizzle = 32>>, %x: memref<128x8xf8E8M0FNU, #frag.tensor<scales>>, %y: memref<64x8xf8E8M0FNU, #frag.tensor<scales>>, %d: !sum) {
  frag.tcgen05_mma %a, %b scaled %x, %y into %d : !p, memref<256x64x!frag.packed<f4E2M1FN>, #frag.shared<swizzle = 32>> scaled memref<128x8xf8E8M0FNU, #frag.tensor<scales>>, memref<64x8xf8E8M0FNU, #frag.tensor<scales>> into !sum
  func.return
}
// -----
// fp4 in a byte each.
func.func @f(%a: memref<128x128xf4E2M1FN, #frag.shared<swizzle = 128>>, %b: !b, %x: !sfa, %y: !sfb, %d: !sum) {
  frag.tcgen05_mma %a, %b transposed scaled %x, %y into %d : memref<128x128xf4E2M1FN, #frag.shared<swizzle = 128>>, !b scaled !sfa, !sfb into !sum
  func.return
}
