// RUN: -p frag-place
// One matrix of a stack.
func.func @f(%i: index) {
  %m = memref.alloc() : memref<2x64x32xf16, #frag.shared<swizzle = 64>>
  %0 = frag.view %m[%i] : memref<2x64x32xf16, #frag.shared<swizzle = 64>> -> memref<64x32xf16, #frag.shared<swizzle = 64>>
  %1 = frag.view %m[1] : memref<2x64x32xf16, #frag.shared<swizzle = 64>> -> memref<64x32xf16, #frag.shared<swizzle = 64>>
  func.return
}
