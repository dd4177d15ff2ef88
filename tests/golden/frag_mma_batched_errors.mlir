// RUN: -p frag-place
// -----
// Matrices.
func.func @f(%a: !frag.tile<16x16xf16>, %b: !frag.tile<16x8xf16>, %c: !frag.tile<16x8xf32>) {
  %d = frag.mma_batched %a, %b, %c : !frag.tile<16x16xf16>, !frag.tile<16x8xf16>, !frag.tile<16x8xf32> -> !frag.tile<16x8xf32>
  func.return
}
// -----
// Batches of different sizes.
func.func @f(%a: !frag.tile<3x16x16xf16>, %b: !frag.tile<2x16x8xf16>, %c: !frag.tile<3x16x8xf32>) {
  %d = frag.mma_batched %a, %b, %c : !frag.tile<3x16x16xf16>, !frag.tile<2x16x8xf16>, !frag.tile<3x16x8xf32> -> !frag.tile<3x16x8xf32>
  func.return
}
// -----
// K of A is not K of B.
func.func @f(%a: !frag.tile<2x16x16xf16>, %b: !frag.tile<2x8x8xf16>, %c: !frag.tile<2x16x8xf32>) {
  %d = frag.mma_batched %a, %b, %c : !frag.tile<2x16x16xf16>, !frag.tile<2x8x8xf16>, !frag.tile<2x16x8xf32> -> !frag.tile<2x16x8xf32>
  func.return
}
// -----
// M that no instruction divides.
func.func @f(%a: !frag.tile<2x17x16xf16>, %b: !frag.tile<2x16x8xf16>, %c: !frag.tile<2x17x8xf32>) {
  %d = frag.mma_batched %a, %b, %c using "m16n8k16.f16" : !frag.tile<2x17x16xf16>, !frag.tile<2x16x8xf16>, !frag.tile<2x17x8xf32> -> !frag.tile<2x17x8xf32>
  func.return
}
// -----
// The instruction whose products come last.
func.func @f(%a: !frag.tile<4x8x4xf16>, %b: !frag.tile<4x4x8xf16>, %c: !frag.tile<4x8x8xf32>) {
  %d = frag.mma_batched %a, %b, %c using "m8n8k4.f16.row.col" : !frag.tile<4x8x4xf16>, !frag.tile<4x4x8xf16>, !frag.tile<4x8x8xf32> -> !frag.tile<4x8x8xf32>
  func.return
}
