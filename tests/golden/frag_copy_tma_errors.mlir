// RUN: -p frag-place
// -----
// In the background twice.
func.func @f(%a: memref<64x32xf16>) {
  %m = memref.alloc() : memref<64x32xf16, #frag.shared>
  frag.copy async tma %a[0, 0] to %m[] : memref<64x32xf16> to memref<64x32xf16, #frag.shared>
  func.return
}
// -----
// Masked, which it is.
func.func @f(%a: memref<64x32xf16>) {
  %m = memref.alloc() : memref<64x32xf16, #frag.shared>
  frag.copy tma %a[0, 0] to %m[] masked : memref<64x32xf16> to memref<64x32xf16, #frag.shared>
  func.return
}
// -----
// Multicast by all threads.
func.func @f(%a: memref<64x32xf16>) {
  %m = memref.alloc() : memref<64x32xf16, #frag.shared>
  frag.copy %a[0, 0] to %m[] multicast : memref<64x32xf16> to memref<64x32xf16, #frag.shared>
  func.return
}
// -----
// Multicast to global memory.
func.func @f(%a: memref<64x32xf16>) {
  %m = memref.alloc() : memref<64x32xf16, #frag.shared>
  frag.copy tma %m[] to %a[0, 0] multicast : memref<64x32xf16, #frag.shared> to memref<64x32xf16>
  func.return
}
// -----
// Between shared memories.
func.func @f(%a: memref<64x32xf16>) {
  %m = memref.alloc() : memref<64x32xf16, #frag.shared>
  frag.copy tma %m[] to %m[] : memref<64x32xf16, #frag.shared> to memref<64x32xf16, #frag.shared>
  func.return
}
// -----
// Elements of another type.
func.func @f(%a: memref<64x32xbf16>) {
  %m = memref.alloc() : memref<64x32xf16, #frag.shared>
  frag.copy tma %a[0, 0] to %m[] : memref<64x32xbf16> to memref<64x32xf16, #frag.shared>
  func.return
}
// -----
// Four bits.
func.func @f(%a: memref<64x32xsi4>) {
  %m = memref.alloc() : memref<64x32xsi4, #frag.shared>
  frag.copy tma %a[0, 0] to %m[] : memref<64x32xsi4> to memref<64x32xsi4, #frag.shared>
  func.return
}
// -----
// A vector.
func.func @f(%a: memref<64xf16>) {
  %m = memref.alloc() : memref<64x32xf16, #frag.shared>
  frag.copy tma %a[0] to %m[] : memref<64xf16> to memref<64x32xf16, #frag.shared>
  func.return
}
// -----
// Too few indices.
func.func @f(%a: memref<64x32xf16>) {
  %m = memref.alloc() : memref<64x32xf16, #frag.shared>
  frag.copy tma %m[] to %a[0] : memref<64x32xf16, #frag.shared> to memref<64x32xf16>
  func.return
}
// -----
// Rows of 66 bytes.
func.func @f(%a: memref<?x33xf16>) {
  %m = memref.alloc() : memref<64x32xf16, #frag.shared>
  frag.copy tma %a[0, 0] to %m[] : memref<?x33xf16> to memref<64x32xf16, #frag.shared>
  func.return
}
// -----
// No neighbours.
func.func @f(%a: memref<64x32xf16, strided<[64, 2]>>) {
  %m = memref.alloc() : memref<64x32xf16, #frag.shared>
  frag.copy tma %a[0, 0] to %m[] : memref<64x32xf16, strided<[64, 2]>> to memref<64x32xf16, #frag.shared>
  func.return
}
// -----
// Padded rows.
func.func @f(%a: memref<64x64xf16>) {
  %m = memref.alloc() : memref<64x64xf16, #frag.layout<"row [64:72] col [64:1]">, #frag.shared>
  frag.copy tma %a[0, 0] to %m[] : memref<64x64xf16> to memref<64x64xf16, #frag.layout<"row [64:72] col [64:1]">, #frag.shared>
  func.return
}
// -----
// Matrices of 576 bytes.
func.func @f(%a: memref<64x64xf16>) {
  %m = memref.alloc() : memref<2x9x32xf16, #frag.shared>
  frag.copy tma %a[0, 0] to %m[1] : memref<64x64xf16> to memref<2x9x32xf16, #frag.shared>
  func.return
}
// -----
// Half of the last swizzle would be written too.
func.func @f(%a: memref<64x128xf16>) {
  %m = memref.alloc() : memref<64x96xf16, #frag.shared<swizzle = 128>>
  frag.copy tma %m[] to %a[0, 0] : memref<64x96xf16, #frag.shared<swizzle = 128>> to memref<64x128xf16>
  func.return
}
// -----
// Adds to shared memory.
func.func @f(%a: memref<64x32xf16>) {
  %m = memref.alloc() : memref<64x32xf16, #frag.shared>
  frag.copy tma add %a[0, 0] to %m[] : memref<64x32xf16> to memref<64x32xf16, #frag.shared>
  func.return
}
// -----
// Adds what has no sum.
func.func @f(%a: memref<64x32xf64>) {
  %m = memref.alloc() : memref<64x32xf64, #frag.shared>
  frag.copy tma add %m[] to %a[0, 0] : memref<64x32xf64, #frag.shared> to memref<64x32xf64>
  func.return
}
// -----
// Adds by threads.
func.func @f(%a: memref<64x32xf32>) {
  %m = memref.alloc() : memref<64x32xf32, #frag.shared>
  frag.copy add %m[] to %a[0, 0] : memref<64x32xf32, #frag.shared> to memref<64x32xf32>
  func.return
}
