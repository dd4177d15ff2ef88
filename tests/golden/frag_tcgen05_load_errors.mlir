// RUN: -p frag-place
!a = memref<128x64xf16, #frag.shared<swizzle = 128>>
!b = memref<64x64xf16, #frag.shared<swizzle = 128>>
!sum = memref<128x64xf32, #frag.tensor>
// -----
// From shared memory.
func.func @f(%d: memref<128x64xf32, #frag.shared>) {
  %t = frag.tcgen05_load %d : memref<128x64xf32, #frag.shared> -> !frag.tile<128x64xf32>
  func.return
}
// -----
// Some rows.
func.func @f(%d: !sum) {
  %t = frag.tcgen05_load %d : !sum -> !frag.tile<64x64xf32>
  func.return
}
// -----
// More columns than there are.
func.func @f(%d: !sum) {
  %t = frag.tcgen05_load %d from 48 : !sum -> !frag.tile<128x32xf32>
  func.return
}
// -----
// Of another type.
func.func @f(%d: !sum) {
  %t = frag.tcgen05_load %d : !sum -> !frag.tile<128x64xf16>
  func.return
}
// -----
// By frag.load.
func.func @f(%d: !sum) {
  %t = frag.load %d[0, 0] : !sum -> !frag.tile<128x64xf32>
  func.return
}
// -----
// An odd number of sums of f16.
func.func @f(%d: memref<128x64xf16, #frag.tensor>) {
  %t = frag.tcgen05_load %d : memref<128x64xf16, #frag.tensor> -> !frag.tile<128x3xf16>
  func.return
}
