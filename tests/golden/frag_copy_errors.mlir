// RUN: -p frag-place
// -----
// Out of shared memory.
func.func @f(%a: memref<64x32xf16>) {
  %m = memref.alloc() : memref<64x32xf16, #frag.shared>
  frag.copy %m[0, 0] to %a[] : memref<64x32xf16, #frag.shared> to memref<64x32xf16>
  func.return
}
// -----
// Elements of another type.
func.func @f(%a: memref<64x32xbf16>) {
  %m = memref.alloc() : memref<64x32xf16, #frag.shared>
  frag.copy %a[0, 0] to %m[] : memref<64x32xbf16> to memref<64x32xf16, #frag.shared>
  func.return
}
// -----
// Too few indices of the source.
func.func @f(%a: memref<64x32xf16>) {
  %m = memref.alloc() : memref<64x32xf16, #frag.shared>
  frag.copy %a[0] to %m[] : memref<64x32xf16> to memref<64x32xf16, #frag.shared>
  func.return
}
// -----
// Indices of the target's matrix.
func.func @f(%a: memref<64x32xf16>) {
  %m = memref.alloc() : memref<64x32xf16, #frag.shared>
  frag.copy %a[0, 0] to %m[0, 0] : memref<64x32xf16> to memref<64x32xf16, #frag.shared>
  func.return
}
// -----
// A vector.
func.func @f(%a: memref<64xf16>) {
  %m = memref.alloc() : memref<64x32xf16, #frag.shared>
  frag.copy %a[0] to %m[] : memref<64xf16> to memref<64x32xf16, #frag.shared>
  func.return
}
// -----
// A swizzle that there is not.
func.func @f(%a: memref<64x32xf16>) {
  %m = memref.alloc() : memref<64x32xf16, #frag.shared<swizzle = 48>>
  func.return
}
