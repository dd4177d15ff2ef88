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
// -----
// A product that nobody waits for.
func.func @f() {
  %a = memref.alloc() : memref<64x16xf16, #frag.shared<swizzle = 32>>
  %b = memref.alloc() : memref<8x16xf16, #frag.shared<swizzle = 32>>
  %u = frag.undefined : !frag.tile<64x8xf32>
  %t = frag.wgmma async %a, %b transposed, %u : memref<64x16xf16, #frag.shared<swizzle = 32>>, memref<8x16xf16, #frag.shared<swizzle = 32>>, !frag.tile<64x8xf32> -> !frag.in_flight<!frag.tile<64x8xf32>>
  func.return
}
// -----
// Two sums of one in flight.
func.func @f() {
  %a = memref.alloc() : memref<64x16xf16, #frag.shared<swizzle = 32>>
  %b = memref.alloc() : memref<8x16xf16, #frag.shared<swizzle = 32>>
  %u = frag.undefined : !frag.in_flight<!frag.tile<64x8xf32>>
  %t = frag.wgmma async %a, %b transposed, %u : memref<64x16xf16, #frag.shared<swizzle = 32>>, memref<8x16xf16, #frag.shared<swizzle = 32>>, !frag.in_flight<!frag.tile<64x8xf32>>
  %v = frag.wgmma async %a, %b transposed, %u : memref<64x16xf16, #frag.shared<swizzle = 32>>, memref<8x16xf16, #frag.shared<swizzle = 32>>, !frag.in_flight<!frag.tile<64x8xf32>>
  %d = frag.await %t : !frag.in_flight<!frag.tile<64x8xf32>>
  %e = frag.await %v : !frag.in_flight<!frag.tile<64x8xf32>>
  func.return
}
// -----
// Each turn would add to the same one.
func.func @f(%n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = memref.alloc() : memref<64x16xf16, #frag.shared<swizzle = 32>>
  %b = memref.alloc() : memref<8x16xf16, #frag.shared<swizzle = 32>>
  %u = frag.undefined : !frag.in_flight<!frag.tile<64x8xf32>>
  scf.for %i = %c0 to %n step %c1 {
    %t = frag.wgmma async %a, %b transposed, %u : memref<64x16xf16, #frag.shared<swizzle = 32>>, memref<8x16xf16, #frag.shared<swizzle = 32>>, !frag.in_flight<!frag.tile<64x8xf32>>
    %d = frag.await %t : !frag.in_flight<!frag.tile<64x8xf32>>
  }
  func.return
}
// -----
// It is there in one branch only.
func.func @f(%p: i1) {
  %a = memref.alloc() : memref<64x16xf16, #frag.shared<swizzle = 32>>
  %b = memref.alloc() : memref<8x16xf16, #frag.shared<swizzle = 32>>
  %u = frag.undefined : !frag.tile<64x8xf32>
  %t = frag.wgmma async %a, %b transposed, %u : memref<64x16xf16, #frag.shared<swizzle = 32>>, memref<8x16xf16, #frag.shared<swizzle = 32>>, !frag.tile<64x8xf32> -> !frag.in_flight<!frag.tile<64x8xf32>>
  scf.if %p {
    %d = frag.await %t : !frag.in_flight<!frag.tile<64x8xf32>>
  }
  func.return
}
