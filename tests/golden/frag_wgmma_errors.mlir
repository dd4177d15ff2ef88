// RUN: -p frag-place
// -----
// Shapes that do not fit: B is N x K, so it is transposed.
func.func @f() {
  %a = memref.alloc() : memref<64x64xf16, #frag.shared<swizzle = 128>>
  %b = memref.alloc() : memref<96x64xf16, #frag.shared<swizzle = 128>>
  %z = arith.constant 0.0 : f32
  %c = frag.fill %z : !frag.tile<64x96xf32>
  %d = frag.wgmma %a, %b, %c : memref<64x64xf16, #frag.shared<swizzle = 128>>, memref<96x64xf16, #frag.shared<swizzle = 128>>, !frag.tile<64x96xf32>
  func.return
}
// -----
// B in global memory.
func.func @f(%a: memref<64x64xf16>, %b: memref<64x64xf16>) {
  %z = arith.constant 0.0 : f32
  %c = frag.fill %z : !frag.tile<64x64xf32>
  %t = frag.load %a[0, 0] : memref<64x64xf16> -> !frag.tile<64x64xf16>
  %d = frag.wgmma %t, %b, %c : !frag.tile<64x64xf16>, memref<64x64xf16>, !frag.tile<64x64xf32>
  func.return
}
// -----
// A tile is never transposed.
func.func @f(%m: memref<64x64xf16>) {
  %b = memref.alloc() : memref<64x64xf16, #frag.shared<swizzle = 128>>
  %z = arith.constant 0.0 : f32
  %c = frag.fill %z : !frag.tile<64x64xf32>
  %a = frag.load %m[0, 0] : memref<64x64xf16> -> !frag.tile<64x64xf16>
  %d = frag.wgmma %a transposed, %b, %c : !frag.tile<64x64xf16>, memref<64x64xf16, #frag.shared<swizzle = 128>>, !frag.tile<64x64xf32>
  func.return
}
// -----
// wgmma does not multiply f64.
func.func @f() {
  %a = memref.alloc() : memref<64x64xf64, #frag.shared<swizzle = 128>>
  %b = memref.alloc() : memref<64x64xf64, #frag.shared<swizzle = 128>>
  %z = arith.constant 0.0 : f64
  %c = frag.fill %z : !frag.tile<64x64xf64>
  %d = frag.wgmma %a, %b, %c : memref<64x64xf64, #frag.shared<swizzle = 128>>, memref<64x64xf64, #frag.shared<swizzle = 128>>, !frag.tile<64x64xf64>
  func.return
}
// -----
// f16 is not summed in i32.
func.func @f() {
  %a = memref.alloc() : memref<64x64xf16, #frag.shared<swizzle = 128>>
  %b = memref.alloc() : memref<64x64xf16, #frag.shared<swizzle = 128>>
  %z = arith.constant 0 : i32
  %c = frag.fill %z : !frag.tile<64x64xi32>
  %d = frag.wgmma %a, %b, %c : memref<64x64xf16, #frag.shared<swizzle = 128>>, memref<64x64xf16, #frag.shared<swizzle = 128>>, !frag.tile<64x64xi32>
  func.return
}
// -----
// A warpgroup computes 64 rows.
func.func @f() {
  %a = memref.alloc() : memref<32x64xf16, #frag.shared<swizzle = 128>>
  %b = memref.alloc() : memref<64x64xf16, #frag.shared<swizzle = 128>>
  %z = arith.constant 0.0 : f32
  %c = frag.fill %z : !frag.tile<32x64xf32>
  %d = frag.wgmma %a, %b, %c : memref<32x64xf16, #frag.shared<swizzle = 128>>, memref<64x64xf16, #frag.shared<swizzle = 128>>, !frag.tile<32x64xf32>
  func.return
}
// -----
// N is a multiple of 8.
func.func @f() {
  %a = memref.alloc() : memref<64x64xf16, #frag.shared<swizzle = 128>>
  %b = memref.alloc() : memref<64x12xf16, #frag.shared<swizzle = 128>>
  %z = arith.constant 0.0 : f32
  %c = frag.fill %z : !frag.tile<64x12xf32>
  %d = frag.wgmma %a, %b, %c : memref<64x64xf16, #frag.shared<swizzle = 128>>, memref<64x12xf16, #frag.shared<swizzle = 128>>, !frag.tile<64x12xf32>
  func.return
}
// -----
// K is a multiple of 16.
func.func @f() {
  %a = memref.alloc() : memref<64x24xf16, #frag.shared<swizzle = 128>>
  %b = memref.alloc() : memref<24x64xf16, #frag.shared<swizzle = 128>>
  %z = arith.constant 0.0 : f32
  %c = frag.fill %z : !frag.tile<64x64xf32>
  %d = frag.wgmma %a, %b, %c : memref<64x24xf16, #frag.shared<swizzle = 128>>, memref<24x64xf16, #frag.shared<swizzle = 128>>, !frag.tile<64x64xf32>
  func.return
}
// -----
// A stack: pick one with frag.view.
func.func @f() {
  %a = memref.alloc() : memref<2x64x64xf16, #frag.shared<swizzle = 128>>
  %b = memref.alloc() : memref<64x64xf16, #frag.shared<swizzle = 128>>
  %z = arith.constant 0.0 : f32
  %c = frag.fill %z : !frag.tile<64x64xf32>
  %d = frag.wgmma %a, %b, %c : memref<2x64x64xf16, #frag.shared<swizzle = 128>>, memref<64x64xf16, #frag.shared<swizzle = 128>>, !frag.tile<64x64xf32>
  func.return
}
