// RUN: -p frag-place{target=sm_90a}
// -----
// Floats are not clamped.
func.func @f() {
  %a = memref.alloc() : memref<64x16xf16, #frag.shared<swizzle = 128>>
  %b = memref.alloc() : memref<8x16xf16, #frag.shared<swizzle = 128>>
  %z = arith.constant 0.0 : f32
  %c = frag.fill %z : !frag.tile<64x8xf32>
  %d = frag.wgmma %a, %b transposed, %c satfinite : memref<64x16xf16, #frag.shared<swizzle = 128>>, memref<8x16xf16, #frag.shared<swizzle = 128>>, !frag.tile<64x8xf32>
  func.return
}
// -----
// Integers are not negated.
func.func @f() {
  %a = memref.alloc() : memref<64x32xsi8, #frag.shared<swizzle = 128>>
  %b = memref.alloc() : memref<8x32xsi8, #frag.shared<swizzle = 128>>
  %z = arith.constant 0 : i32
  %c = frag.fill %z : !frag.tile<64x8xi32>
  %d = frag.wgmma %a negated, %b transposed, %c : memref<64x32xsi8, #frag.shared<swizzle = 128>>, memref<8x32xsi8, #frag.shared<swizzle = 128>>, !frag.tile<64x8xi32>
  func.return
}
// -----
// A is packed: it has half of K.
func.func @f(%e: memref<64x8xui4>) {
  %a = memref.alloc() : memref<64x32xf16, #frag.shared<swizzle = 128>>
  %b = memref.alloc() : memref<8x32xf16, #frag.shared<swizzle = 128>>
  %z = arith.constant 0.0 : f32
  %c = frag.fill %z : !frag.tile<64x8xf32>
  %s = frag.load %e[0, 0] : memref<64x8xui4> -> !frag.tile<64x8xui4>
  %d = frag.wgmma %a, %b transposed, %c sparse %s : memref<64x32xf16, #frag.shared<swizzle = 128>>, memref<8x32xf16, #frag.shared<swizzle = 128>>, !frag.tile<64x8xf32>, !frag.tile<64x8xui4>
  func.return
}
// -----
// Half of an instruction's K.
func.func @f(%e: memref<64x8xui4>) {
  %a = memref.alloc() : memref<64x8xf16, #frag.shared<swizzle = 128>>
  %b = memref.alloc() : memref<8x16xf16, #frag.shared<swizzle = 128>>
  %z = arith.constant 0.0 : f32
  %c = frag.fill %z : !frag.tile<64x8xf32>
  %s = frag.load %e[0, 0] : memref<64x8xui4> -> !frag.tile<64x8xui4>
  %d = frag.wgmma %a, %b transposed, %c sparse %s : memref<64x8xf16, #frag.shared<swizzle = 128>>, memref<8x16xf16, #frag.shared<swizzle = 128>>, !frag.tile<64x8xf32>, !frag.tile<64x8xui4>
  func.return
}
// -----
// A nibble for every two.
func.func @f(%e: memref<64x8xui4>) {
  %a = memref.alloc() : memref<64x32xf16, #frag.shared<swizzle = 128>>
  %b = memref.alloc() : memref<8x64xf16, #frag.shared<swizzle = 128>>
  %z = arith.constant 0.0 : f32
  %c = frag.fill %z : !frag.tile<64x8xf32>
  %s = frag.load %e[0, 0] : memref<64x8xui4> -> !frag.tile<64x8xui4>
  %d = frag.wgmma %a, %b transposed, %c sparse %s : memref<64x32xf16, #frag.shared<swizzle = 128>>, memref<8x64xf16, #frag.shared<swizzle = 128>>, !frag.tile<64x8xf32>, !frag.tile<64x8xui4>
  func.return
}
// -----
// Single bits are never sparse.
func.func @f(%e: memref<64x8xui4>) {
  %a = memref.alloc() : memref<64x256xui1, #frag.shared<swizzle = 128>>
  %b = memref.alloc() : memref<8x512xui1, #frag.shared<swizzle = 128>>
  %z = arith.constant 0 : i32
  %c = frag.fill %z : !frag.tile<64x8xi32>
  %s = frag.load %e[0, 0] : memref<64x8xui4> -> !frag.tile<64x8xui4>
  %d = frag.wgmma %a, %b transposed, %c sparse %s : memref<64x256xui1, #frag.shared<swizzle = 128>>, memref<8x512xui1, #frag.shared<swizzle = 128>>, !frag.tile<64x8xi32>, !frag.tile<64x8xui4>
  func.return
}
