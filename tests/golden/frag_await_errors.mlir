// RUN: -p frag-place{target=sm_90a}
// -----
// A number.
func.func @f(%n: index) {
  %s = frag.await %n : index
  func.return
}
// -----
// A tile is there already.
func.func @f(%t: !frag.tile<64x8xf32>) {
  %d = frag.await %t : !frag.tile<64x8xf32>
  func.return
}
// -----
// What is in flight is no tile yet.
func.func @f(%m: memref<64x8xf32>) {
  %a = memref.alloc() : memref<64x16xf16, #frag.shared<swizzle = 32>>
  %b = memref.alloc() : memref<8x16xf16, #frag.shared<swizzle = 32>>
  %u = frag.undefined : !frag.tile<64x8xf32>
  %t = frag.wgmma async %a, %b transposed, %u : memref<64x16xf16, #frag.shared<swizzle = 32>>, memref<8x16xf16, #frag.shared<swizzle = 32>>, !frag.tile<64x8xf32> -> !frag.in_flight<!frag.tile<64x8xf32>>
  frag.store %t, %m[0, 0] : !frag.in_flight<!frag.tile<64x8xf32>>, memref<64x8xf32>
  func.return
}
// -----
// A product that is waited for takes no c in flight.
func.func @f() {
  %a = memref.alloc() : memref<64x16xf16, #frag.shared<swizzle = 32>>
  %b = memref.alloc() : memref<8x16xf16, #frag.shared<swizzle = 32>>
  %u = frag.undefined : !frag.tile<64x8xf32>
  %t = frag.wgmma async %a, %b transposed, %u : memref<64x16xf16, #frag.shared<swizzle = 32>>, memref<8x16xf16, #frag.shared<swizzle = 32>>, !frag.tile<64x8xf32> -> !frag.in_flight<!frag.tile<64x8xf32>>
  %d = frag.wgmma %a, %b transposed, %t : memref<64x16xf16, #frag.shared<swizzle = 32>>, memref<8x16xf16, #frag.shared<swizzle = 32>>, !frag.in_flight<!frag.tile<64x8xf32>>
  func.return
}
// -----
// What an asynchronous product gives is in flight.
func.func @f() {
  %a = memref.alloc() : memref<64x16xf16, #frag.shared<swizzle = 32>>
  %b = memref.alloc() : memref<8x16xf16, #frag.shared<swizzle = 32>>
  %u = frag.undefined : !frag.tile<64x8xf32>
  %d = frag.wgmma async %a, %b transposed, %u : memref<64x16xf16, #frag.shared<swizzle = 32>>, memref<8x16xf16, #frag.shared<swizzle = 32>>, !frag.tile<64x8xf32>
  func.return
}
