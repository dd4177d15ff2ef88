// RUN: -p frag-place
// -----
// Of global memory.
func.func @f(%m: memref<2x64x32xf16>) {
  %0 = frag.view %m[0] : memref<2x64x32xf16> -> memref<64x32xf16>
  func.return
}
// -----
// Another shape.
func.func @f() {
  %m = memref.alloc() : memref<2x64x32xf16, #frag.shared<swizzle = 64>>
  %0 = frag.view %m[0] : memref<2x64x32xf16, #frag.shared<swizzle = 64>> -> memref<32x64xf16, #frag.shared<swizzle = 64>>
  func.return
}
// -----
// Another swizzle.
func.func @f() {
  %m = memref.alloc() : memref<2x64x32xf16, #frag.shared<swizzle = 64>>
  %0 = frag.view %m[0] : memref<2x64x32xf16, #frag.shared<swizzle = 64>> -> memref<64x32xf16, #frag.shared<swizzle = 128>>
  func.return
}
// -----
// No index.
func.func @f() {
  %m = memref.alloc() : memref<2x64x32xf16, #frag.shared<swizzle = 64>>
  %0 = frag.view %m[] : memref<2x64x32xf16, #frag.shared<swizzle = 64>> -> memref<64x32xf16, #frag.shared<swizzle = 64>>
  func.return
}
