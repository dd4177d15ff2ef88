// RUN: -p frag-place
// -----
// M x N x K that the instruction named does not divide; by itself it is padded.
func.func @f(%a: memref<17x16xf16>, %b: memref<16x8xf16>, %c: memref<17x8xf32>) {
  %ta = frag.load %a[0, 0] : memref<17x16xf16> -> !frag.tile<17x16xf16>
  %tb = frag.load %b[0, 0] : memref<16x8xf16> -> !frag.tile<16x8xf16>
  %tc = frag.load %c[0, 0] : memref<17x8xf32> -> !frag.tile<17x8xf32>
  %d = frag.mma %ta, %tb, %tc using "m16n8k16.f16" : !frag.tile<17x16xf16>, !frag.tile<16x8xf16>, !frag.tile<17x8xf32> -> !frag.tile<17x8xf32>
  func.return
}
// -----
// f16 into f64.
func.func @f(%a: memref<16x16xf16>, %b: memref<16x8xf16>, %c: memref<16x8xf64>) {
  %ta = frag.load %a[0, 0] : memref<16x16xf16> -> !frag.tile<16x16xf16>
  %tb = frag.load %b[0, 0] : memref<16x8xf16> -> !frag.tile<16x8xf16>
  %tc = frag.load %c[0, 0] : memref<16x8xf64> -> !frag.tile<16x8xf64>
  %d = frag.mma %ta, %tb, %tc : !frag.tile<16x16xf16>, !frag.tile<16x8xf16>, !frag.tile<16x8xf64> -> !frag.tile<16x8xf64>
  func.return
}
// -----
// A by B of other types.
func.func @f(%a: memref<16x16xf16>, %b: memref<16x8xbf16>, %c: memref<16x8xf32>) {
  %ta = frag.load %a[0, 0] : memref<16x16xf16> -> !frag.tile<16x16xf16>
  %tb = frag.load %b[0, 0] : memref<16x8xbf16> -> !frag.tile<16x8xbf16>
  %tc = frag.load %c[0, 0] : memref<16x8xf32> -> !frag.tile<16x8xf32>
  %d = frag.mma %ta, %tb, %tc : !frag.tile<16x16xf16>, !frag.tile<16x8xbf16>, !frag.tile<16x8xf32> -> !frag.tile<16x8xf32>
  func.return
}
// -----
// K of A is not K of B.
func.func @f(%a: memref<16x16xf16>, %b: memref<8x8xf16>, %c: memref<16x8xf32>) {
  %ta = frag.load %a[0, 0] : memref<16x16xf16> -> !frag.tile<16x16xf16>
  %tb = frag.load %b[0, 0] : memref<8x8xf16> -> !frag.tile<8x8xf16>
  %tc = frag.load %c[0, 0] : memref<16x8xf32> -> !frag.tile<16x8xf32>
  %d = frag.mma %ta, %tb, %tc : !frag.tile<16x16xf16>, !frag.tile<8x8xf16>, !frag.tile<16x8xf32> -> !frag.tile<16x8xf32>
  func.return
}
// -----
// M of A is not M of C.
func.func @f(%a: memref<16x16xf16>, %b: memref<16x8xf16>, %c: memref<32x8xf32>) {
  %ta = frag.load %a[0, 0] : memref<16x16xf16> -> !frag.tile<16x16xf16>
  %tb = frag.load %b[0, 0] : memref<16x8xf16> -> !frag.tile<16x8xf16>
  %tc = frag.load %c[0, 0] : memref<32x8xf32> -> !frag.tile<32x8xf32>
  %d = frag.mma %ta, %tb, %tc : !frag.tile<16x16xf16>, !frag.tile<16x8xf16>, !frag.tile<32x8xf32> -> !frag.tile<32x8xf32>
  func.return
}
// -----
// An instruction that there is not.
func.func @f(%a: memref<16x16xf16>, %b: memref<16x8xf16>, %c: memref<16x8xf32>) {
  %ta = frag.load %a[0, 0] : memref<16x16xf16> -> !frag.tile<16x16xf16>
  %tb = frag.load %b[0, 0] : memref<16x8xf16> -> !frag.tile<16x8xf16>
  %tc = frag.load %c[0, 0] : memref<16x8xf32> -> !frag.tile<16x8xf32>
  %d = frag.mma %ta, %tb, %tc using "m16n8k32.f16" : !frag.tile<16x16xf16>, !frag.tile<16x8xf16>, !frag.tile<16x8xf32> -> !frag.tile<16x8xf32>
  func.return
}
// -----
// A name that is none.
func.func @f(%a: memref<16x16xf16>, %b: memref<16x8xf16>, %c: memref<16x8xf32>) {
  %ta = frag.load %a[0, 0] : memref<16x16xf16> -> !frag.tile<16x16xf16>
  %tb = frag.load %b[0, 0] : memref<16x8xf16> -> !frag.tile<16x8xf16>
  %tc = frag.load %c[0, 0] : memref<16x8xf32> -> !frag.tile<16x8xf32>
  %d = frag.mma %ta, %tb, %tc using "fast" : !frag.tile<16x16xf16>, !frag.tile<16x8xf16>, !frag.tile<16x8xf32> -> !frag.tile<16x8xf32>
  func.return
}
// -----
// An instruction of other types.
func.func @f(%a: memref<16x16xf16>, %b: memref<16x8xf16>, %c: memref<16x8xf32>) {
  %ta = frag.load %a[0, 0] : memref<16x16xf16> -> !frag.tile<16x16xf16>
  %tb = frag.load %b[0, 0] : memref<16x8xf16> -> !frag.tile<16x8xf16>
  %tc = frag.load %c[0, 0] : memref<16x8xf32> -> !frag.tile<16x8xf32>
  %d = frag.mma %ta, %tb, %tc using "m16n8k16.bf16" : !frag.tile<16x16xf16>, !frag.tile<16x8xf16>, !frag.tile<16x8xf32> -> !frag.tile<16x8xf32>
  func.return
}
// -----
// m8n8k4.f16 without the order of A and B.
func.func @f(%a: memref<8x4x4xf16>, %b: memref<4x8x4xf16>, %c: memref<8x8x4xf32>) {
  %ta = frag.load %a[0, 0, 0] : memref<8x4x4xf16> -> !frag.tile<8x4x4xf16>
  %tb = frag.load %b[0, 0, 0] : memref<4x8x4xf16> -> !frag.tile<4x8x4xf16>
  %tc = frag.load %c[0, 0, 0] : memref<8x8x4xf32> -> !frag.tile<8x8x4xf32>
  %d = frag.mma %ta, %tb, %tc using "m8n8k4.f16" : !frag.tile<8x4x4xf16>, !frag.tile<4x8x4xf16>, !frag.tile<8x8x4xf32> -> !frag.tile<8x8x4xf32>
  func.return
}
// -----
// Three products.
func.func @f(%a: memref<8x4x3xf16>, %b: memref<4x8x3xf16>, %c: memref<8x8x3xf32>) {
  %ta = frag.load %a[0, 0, 0] : memref<8x4x3xf16> -> !frag.tile<8x4x3xf16>
  %tb = frag.load %b[0, 0, 0] : memref<4x8x3xf16> -> !frag.tile<4x8x3xf16>
  %tc = frag.load %c[0, 0, 0] : memref<8x8x3xf32> -> !frag.tile<8x8x3xf32>
  %d = frag.mma %ta, %tb, %tc : !frag.tile<8x4x3xf16>, !frag.tile<4x8x3xf16>, !frag.tile<8x8x3xf32> -> !frag.tile<8x8x3xf32>
  func.return
}
// -----
// C f32, D f16: only m8n8k4 mixes them, the other way round.
func.func @f(%a: memref<16x16xf16>, %b: memref<16x8xf16>, %c: memref<16x8xf32>) {
  %ta = frag.load %a[0, 0] : memref<16x16xf16> -> !frag.tile<16x16xf16>
  %tb = frag.load %b[0, 0] : memref<16x8xf16> -> !frag.tile<16x8xf16>
  %tc = frag.load %c[0, 0] : memref<16x8xf32> -> !frag.tile<16x8xf32>
  %d = frag.mma %ta, %tb, %tc : !frag.tile<16x16xf16>, !frag.tile<16x8xf16>, !frag.tile<16x8xf32> -> !frag.tile<16x8xf16>
  func.return
}
// -----
// A layout that the instruction does not take.
func.func @f(%a: memref<16x16xf16>, %b: memref<16x8xf16>, %c: memref<16x8xf32>) {
  %ta = frag.load %a[0, 0] : memref<16x16xf16> -> !frag.tile<16x16xf16, #frag.mma<m16n8k16.f16, a>>
  %tb = frag.load %b[0, 0] : memref<16x8xf16> -> !frag.tile<16x8xf16, #frag.mma<m16n8k16.f16, b>>
  %tc = frag.load %c[0, 0] : memref<16x8xf32> -> !frag.tile<16x8xf32, #frag.layout<"lane [8:(1,0) 4:(0,2)] element [2:(0,1) 2:(8,0)]">>
  %d = frag.mma %ta, %tb, %tc : !frag.tile<16x16xf16, #frag.mma<m16n8k16.f16, a>>, !frag.tile<16x8xf16, #frag.mma<m16n8k16.f16, b>>, !frag.tile<16x8xf32, #frag.layout<"lane [8:(1,0) 4:(0,2)] element [2:(0,1) 2:(8,0)]">> -> !frag.tile<16x8xf32, #frag.layout<"lane [8:(1,0) 4:(0,2)] element [2:(0,1) 2:(8,0)]">>
  func.return
}
// -----
// frag.warps is two numbers.
func.func @f(%a: memref<16x16xf16>, %b: memref<16x8xf16>, %c: memref<16x8xf32>) attributes {frag.warps = array<i64: 2>} {
  %ta = frag.load %a[0, 0] : memref<16x16xf16> -> !frag.tile<16x16xf16>
  %tb = frag.load %b[0, 0] : memref<16x8xf16> -> !frag.tile<16x8xf16>
  %tc = frag.load %c[0, 0] : memref<16x8xf32> -> !frag.tile<16x8xf32>
  %d = frag.mma %ta, %tb, %tc : !frag.tile<16x16xf16>, !frag.tile<16x8xf16>, !frag.tile<16x8xf32> -> !frag.tile<16x8xf32>
  func.return
}
// -----
// No more than 1024 threads.
func.func @f(%a: memref<1024x16xf16>, %b: memref<16x8xf16>, %c: memref<1024x8xf32>) attributes {frag.warps = array<i64: 64, 1>} {
  %ta = frag.load %a[0, 0] : memref<1024x16xf16> -> !frag.tile<1024x16xf16>
  %tb = frag.load %b[0, 0] : memref<16x8xf16> -> !frag.tile<16x8xf16>
  %tc = frag.load %c[0, 0] : memref<1024x8xf32> -> !frag.tile<1024x8xf32>
  %d = frag.mma %ta, %tb, %tc : !frag.tile<1024x16xf16>, !frag.tile<16x8xf16>, !frag.tile<1024x8xf32> -> !frag.tile<1024x8xf32>
  func.return
}
