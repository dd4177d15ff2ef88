// RUN: -p frag-place{target=sm_90a}
// Products under way together, and one accumulator carried round a loop in flight.
func.func @products(%p: i1, %n: index) attributes {frag.warpgroups = array<i64: 2, 1>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = memref.alloc() : memref<128x64xf16, #frag.shared<swizzle = 128>>
  %b = memref.alloc() : memref<64x64xf16, #frag.shared<swizzle = 128>>
  %u = frag.undefined : !frag.tile<128x64xf32>
  %t = frag.wgmma async %a, %b, %u if %p : memref<128x64xf16, #frag.shared<swizzle = 128>>, memref<64x64xf16, #frag.shared<swizzle = 128>>, !frag.tile<128x64xf32> -> !frag.in_flight<!frag.tile<128x64xf32>>
  %sum = scf.for %i = %c0 to %n step %c1 iter_args(%x = %t) -> (!frag.in_flight<!frag.tile<128x64xf32>>) {
    %y = frag.wgmma async %a, %b, %x : memref<128x64xf16, #frag.shared<swizzle = 128>>, memref<64x64xf16, #frag.shared<swizzle = 128>>, !frag.in_flight<!frag.tile<128x64xf32>>
    scf.yield %y : !frag.in_flight<!frag.tile<128x64xf32>>
  }
  %d = frag.await %sum : !frag.in_flight<!frag.tile<128x64xf32>>
  // one that is waited for, in registers that only now count for something
  %e = frag.wgmma %a, %b, %d if %p : memref<128x64xf16, #frag.shared<swizzle = 128>>, memref<64x64xf16, #frag.shared<swizzle = 128>>, !frag.tile<128x64xf32>
  func.return
}
