// RUN: -p frag-tile{target=sm_100a}
!a = memref<128x128xf8E4M3FN>
!c = memref<128x128xf32>
!x = memref<128x4xf8E8M0FNU>
!p = memref<128x128x!frag.packed<f4E2M1FN>>
// -----
// Of A alone.
func.func @f(%a: !a, %b: !a, %x: !x, %c: !c) {
  frag.matmul %a scaled %x by [1, 32], %b transposed into %c : !a scaled !x, !a into !c
  func.return
}
// -----
// Of two types.
func.func @f(%a: !a, %b: !a, %x: !x, %y: memref<128x4xf8E4M3FN>, %c: !c) {
  frag.matmul %a scaled %x by [1, 32], %b transposed scaled %y transposed by [32, 1] into %c : !a scaled !x, !a scaled memref<128x4xf8E4M3FN> into !c
  func.return
}
// -----
// Without blocks.
func.func @f(%a: !a, %b: !a, %x: memref<128xf8E8M0FNU>, %c: !c) {
  frag.matmul %a scaled %x, %b transposed scaled %x into %c : !a scaled memref<128xf8E8M0FNU>, !a scaled memref<128xf8E8M0FNU> into !c
  func.return
}
// -----
// For 64 of K.
func.func @f(%a: !a, %b: !a, %x: !x, %c: !c) {
  frag.matmul %a scaled %x by [1, 32], %b transposed scaled %x transposed by [64, 1] into %c : !a scaled !x, !a scaled !x into !c
  func.return
}
// -----
// Not as many as blocks.
func.func @f(%a: !a, %b: !a, %x: memref<128x3xf8E8M0FNU>, %c: !c) {
  frag.matmul %a scaled %x by [1, 32], %b transposed scaled %x transposed by [32, 1] into %c : !a scaled memref<128x3xf8E8M0FNU>, !a scaled memref<128x3xf8E8M0FNU> into !c
  func.return
}
// -----
// Not as many chunks.
func.func @f(%a: !a, %b: !a, %x: memref<1x2x2x256xf8E8M0FNU>, %c: !c) {
  frag.matmul %a scaled %x by [1, 32], %b transposed scaled %x transposed by [32, 1] into %c : !a scaled memref<1x2x2x256xf8E8M0FNU>, !a scaled memref<1x2x2x256xf8E8M0FNU> into !c
  func.return
}
// -----
// Chunks of B that are not transposed.
func.func @f(%a: !a, %b: !a, %x: memref<1x1x2x256xf8E8M0FNU>, %c: !c) {
  frag.matmul %a scaled %x by [1, 32], %b transposed scaled %x by [32, 1] into %c : !a scaled memref<1x1x2x256xf8E8M0FNU>, !a scaled memref<1x1x2x256xf8E8M0FNU> into !c
  func.return
}
// -----
// Three dimensions.
func.func @f(%a: !a, %b: !a, %x: memref<1x128x4xf8E8M0FNU>, %c: !c) {
  frag.matmul %a scaled %x by [1, 32], %b transposed scaled %x transposed by [32, 1] into %c : !a scaled memref<1x128x4xf8E8M0FNU>, !a scaled memref<1x128x4xf8E8M0FNU> into !c
  func.return
}
// -----
// fp8 with scales for 16.
func.func @f(%a: !a, %b: !a, %x: memref<128x8xf8E8M0FNU>, %c: !c) {
  frag.matmul %a scaled %x by [1, 16], %b transposed scaled %x transposed by [16, 1] into %c : !a scaled memref<128x8xf8E8M0FNU>, !a scaled memref<128x8xf8E8M0FNU> into !c
  func.return
}
// -----
// Promoted.
func.func @f(%a: !a, %b: !a, %x: !x, %c: !c) {
  frag.matmul %a scaled %x by [1, 32], %b transposed scaled %x transposed by [32, 1] into %c {promote = 64 : i64} : !a scaled !x, !a scaled !x into !c
  func.return
}
// -----
// Sums of f16.
func.func @f(%a: !a, %b: !a, %x: !x, %c: !c) {
  frag.matmul %a scaled %x by [1, 32], %b transposed scaled %x transposed by [32, 1] into %c accumulate f16 : !a scaled !x, !a scaled !x into !c
  func.return
}
// -----
// fp4 without scales.
func.func @f(%a: !p, %b: !p, %c: !c) {
  frag.matmul %a, %b transposed into %c : !p, !p into !c
  func.return
}
// -----
// fp4 along N.
func.func @f(%a: !p, %b: !p, %x: !x, %c: !c) {
  frag.matmul %a scaled %x by [1, 32], %b scaled %x transposed by [32, 1] into %c : !p scaled !x, !p scaled !x into !c
  func.return
}
// -----
// fp4 in a byte each, which tcgen05.mma does not read.
func.func @f(%a: memref<128x128xf4E2M1FN>, %b: !a, %x: !x, %c: !c) {
  frag.matmul %a scaled %x by [1, 32], %b transposed scaled %x transposed by [32, 1] into %c : memref<128x128xf4E2M1FN> scaled !x, !a scaled !x into !c
  func.return
}
