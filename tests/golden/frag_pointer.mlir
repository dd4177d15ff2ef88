// RUN: -p frag-place
// Addresses that differ from lane to lane, in global and shared memory.
func.func @f(%a: memref<32x16xf16, strided<[24, 1]>>, %o: memref<32x16xf32>) {
  %s = memref.alloc() : memref<32x16xf16, #frag.shared<swizzle = 32>>
  frag.copy %a[0, 0] to %s[] masked : memref<32x16xf16, strided<[24, 1]>> to memref<32x16xf16, #frag.shared<swizzle = 32>>
  frag.barrier
  %0 = frag.lanes -> !frag.tile<32x16xf32> in #frag.layout<"lane [32:(1,0)] element [16:(0,1)]"> {
  ^bb0(%lane: index, %warp: index):
    %c3 = arith.constant 3 : index
    %p = frag.pointer %s[%lane, %c3] : memref<32x16xf16, #frag.shared<swizzle = 32>> -> !ptx.ptr<shared>
    %x = ptx.load %p[0] : !ptx.ptr<shared> -> f16
    %q = frag.pointer %a[%lane, %c3] : memref<32x16xf16, strided<[24, 1]>> -> !ptx.ptr<global>
    %y = ptx.load %q[0] : !ptx.ptr<global> -> f16
    %z = arith.addf %x, %y : f16
    %w = arith.extf %z : f16 to f32
    %v = ptx.splat %w : f32 -> vector<16xf32>
    frag.yield %v : vector<16xf32>
  }
  frag.store %0, %o[0, 0] : !frag.tile<32x16xf32>, memref<32x16xf32>
  func.return
}
