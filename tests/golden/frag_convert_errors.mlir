// RUN: -p frag-place
// -----
// Elements stay what they are: use frag.cast.
func.func @f(%a: memref<16x16xf16>) {
  %0 = frag.load %a[0, 0] : memref<16x16xf16> -> !frag.tile<16x16xf16>
  %1 = frag.convert %0 : !frag.tile<16x16xf16> -> !frag.tile<16x16xf32>
  func.return
}
// -----
// A layout of another shape.
func.func @f(%a: memref<16x16xf16>) {
  %0 = frag.load %a[0, 0] : memref<16x16xf16> -> !frag.tile<16x16xf16, #frag.mma<m16n8k16.f16, a>>
  %1 = frag.convert %0 : !frag.tile<16x16xf16, #frag.mma<m16n8k16.f16, a>> -> !frag.tile<16x16xf16, #frag.layout<"lane [8:(1,0) 4:(0,2)] element [2:(0,1)]">>
  func.return
}
// -----
// A layout that does not parse.
func.func @f(%a: memref<16x16xf16>) {
  %0 = frag.load %a[0, 0] : memref<16x16xf16> -> !frag.tile<16x16xf16, #frag.mma<m16n8k16.f16, a>>
  %1 = frag.convert %0 : !frag.tile<16x16xf16, #frag.mma<m16n8k16.f16, a>> -> !frag.tile<16x16xf16, #frag.layout<"lane [8:(1,0">>
  func.return
}
// -----
// A fragment that no instruction has.
func.func @f(%a: memref<16x16xf16>) {
  %0 = frag.load %a[0, 0] : memref<16x16xf16> -> !frag.tile<16x16xf16, #frag.mma<m16n8k16.f16, a>>
  %1 = frag.convert %0 : !frag.tile<16x16xf16, #frag.mma<m16n8k16.f16, a>> -> !frag.tile<16x16xf16, #frag.mma<m16n8k5.f16, a>>
  func.return
}
// -----
// An operand that no instruction has.
func.func @f(%a: memref<16x16xf16>) {
  %0 = frag.load %a[0, 0] : memref<16x16xf16> -> !frag.tile<16x16xf16, #frag.mma<m16n8k16.f16, a>>
  %1 = frag.convert %0 : !frag.tile<16x16xf16, #frag.mma<m16n8k16.f16, a>> -> !frag.tile<16x16xf16, #frag.mma<m16n8k16.f16, e>>
  func.return
}
// -----
// A tile that the instruction's fragments do not divide.
func.func @f(%a: memref<16x8xf16>) {
  %0 = frag.load %a[0, 0] : memref<16x8xf16> -> !frag.tile<16x8xf16, #frag.mma<m16n8k8.f16, a>>
  %1 = frag.convert %0 : !frag.tile<16x8xf16, #frag.mma<m16n8k8.f16, a>> -> !frag.tile<16x8xf16, #frag.mma<m16n8k16.f16, a, warps = [2, 1]>>
  func.return
}
// -----
// Warps are two positive numbers.
func.func @f(%a: memref<16x16xf16>) {
  %0 = frag.load %a[0, 0] : memref<16x16xf16> -> !frag.tile<16x16xf16, #frag.mma<m16n8k16.f16, a>>
  %1 = frag.convert %0 : !frag.tile<16x16xf16, #frag.mma<m16n8k16.f16, a>> -> !frag.tile<16x16xf16, #frag.mma<m16n8k16.f16, a, warps = [0, 1]>>
  func.return
}
