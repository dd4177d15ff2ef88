// RUN: -p frag-place
// A and B from shared memory, both K-major.
func.func @f() {
  %a = memref.alloc() : memref<64x64xf16, #frag.shared<swizzle = 128>>
  %b = memref.alloc() : memref<96x64xf16, #frag.shared<swizzle = 128>>
  %z = arith.constant 0.0 : f32
  %c = frag.fill %z : !frag.tile<64x96xf32>
  %d = frag.wgmma %a, %b transposed, %c : memref<64x64xf16, #frag.shared<swizzle = 128>>, memref<96x64xf16, #frag.shared<swizzle = 128>>, !frag.tile<64x96xf32>
  func.return
}
// A from registers, B MN-major; two warpgroups below each other.
func.func @registers(%m: memref<128x64xbf16>) attributes {frag.warpgroups = array<i64: 2, 1>} {
  %b = memref.alloc() : memref<64x128xbf16, #frag.shared<swizzle = 128>>
  %z = arith.constant 0.0 : f32
  %c = frag.fill %z : !frag.tile<128x128xf32>
  %a = frag.load %m[0, 0] : memref<128x64xbf16> -> !frag.tile<128x64xbf16>
  %d = frag.wgmma %a, %b, %c : !frag.tile<128x64xbf16>, memref<64x128xbf16, #frag.shared<swizzle = 128>>, !frag.tile<128x128xf32>
  func.return
}
// A transposed in memory.
func.func @a_transposed() {
  %a = memref.alloc() : memref<64x128xf16, #frag.shared<swizzle = 128>>
  %b = memref.alloc() : memref<64x64xf16, #frag.shared<swizzle = 128>>
  %z = arith.constant 0.0 : f16
  %c = frag.fill %z : !frag.tile<128x64xf16>
  %d = frag.wgmma %a transposed, %b, %c : memref<64x128xf16, #frag.shared<swizzle = 128>>, memref<64x64xf16, #frag.shared<swizzle = 128>>, !frag.tile<128x64xf16>
  func.return
}
// Bytes.
func.func @bytes() {
  %a = memref.alloc() : memref<64x64xsi8, #frag.shared<swizzle = 64>>
  %b = memref.alloc() : memref<24x64xui8, #frag.shared<swizzle = 64>>
  %z = arith.constant 0 : i32
  %c = frag.fill %z : !frag.tile<64x24xi32>
  %d = frag.wgmma %a, %b transposed, %c : memref<64x64xsi8, #frag.shared<swizzle = 64>>, memref<24x64xui8, #frag.shared<swizzle = 64>>, !frag.tile<64x24xi32>
  func.return
}
