// RUN: -p frag-place{target=sm_90a}
// Metadata of two warpgroups below each other: lane pairs take turns along K.
func.func @sparse(%e: memref<128x16xui4>) attributes {frag.warpgroups = array<i64: 2, 1>} {
  %a = memref.alloc() : memref<128x32xf16, #frag.shared<swizzle = 128>>
  %b = memref.alloc() : memref<24x64xf16, #frag.shared<swizzle = 128>>
  %z = arith.constant 0.0 : f32
  %c = frag.fill %z : !frag.tile<128x24xf32>
  %s = frag.load %e[0, 0] : memref<128x16xui4> -> !frag.tile<128x16xui4>
  %d = frag.wgmma %a, %b transposed negated, %c sparse %s : memref<128x32xf16, #frag.shared<swizzle = 128>>, memref<24x64xf16, #frag.shared<swizzle = 128>>, !frag.tile<128x24xf32>, !frag.tile<128x16xui4>
  func.return
}
// Single bits.
func.func @bits() {
  %a = memref.alloc() : memref<64x512xui1, #frag.shared<swizzle = 128>>
  %b = memref.alloc() : memref<8x512xui1, #frag.shared<swizzle = 128>>
  %z = arith.constant 0 : i32
  %c = frag.fill %z : !frag.tile<64x8xi32>
  %d = frag.wgmma %a, %b transposed, %c : memref<64x512xui1, #frag.shared<swizzle = 128>>, memref<8x512xui1, #frag.shared<swizzle = 128>>, !frag.tile<64x8xi32>
  func.return
}
// Clamped sums.
func.func @clamped() {
  %a = memref.alloc() : memref<64x32xui8, #frag.shared<swizzle = 128>>
  %b = memref.alloc() : memref<8x32xsi8, #frag.shared<swizzle = 128>>
  %z = arith.constant 0 : i32
  %c = frag.fill %z : !frag.tile<64x8xi32>
  %d = frag.wgmma %a, %b transposed, %c satfinite : memref<64x32xui8, #frag.shared<swizzle = 128>>, memref<8x32xsi8, #frag.shared<swizzle = 128>>, !frag.tile<64x8xi32>
  func.return
}
