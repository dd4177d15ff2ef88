// RUN: -p frag-place
!a = memref<128x64xf16, #frag.shared<swizzle = 128>>
!b = memref<64x64xf16, #frag.shared<swizzle = 128, pair = col>>
!sum = memref<128x64xf32, #frag.tensor>
// -----
// B of one block.
func.func @f(%a: !a, %b: memref<64x64xf16, #frag.shared<swizzle = 128>>, %d: !sum) {
  frag.tcgen05_mma pair %a, %b into %d : !a, memref<64x64xf16, #frag.shared<swizzle = 128>> into !sum
  func.return
}
// -----
// Halves of K.
func.func @f(%a: !a, %b: !b, %d: !sum) {
  frag.tcgen05_mma pair %a, %b transposed into %d : !a, !b into !sum
  func.return
}
// -----
// A of a pair.
func.func @f(%a: memref<128x64xf16, #frag.shared<swizzle = 128, pair = row>>, %b: !b, %d: !sum) {
  frag.tcgen05_mma pair %a, %b into %d : memref<128x64xf16, #frag.shared<swizzle = 128, pair = row>>, !b into !sum
  func.return
}
// -----
// A block alone has no halves.
func.func @f(%a: !a, %b: !b, %d: !sum) {
  frag.tcgen05_mma %a, %b into %d : !a, !b into !sum
  func.return
}
// -----
// 512 columns.
!wide = memref<64x512xf16, #frag.shared<swizzle = 128, pair = col>>
func.func @f(%a: !a, %b: !wide, %d: memref<128x512xf32, #frag.tensor>) {
  frag.tcgen05_mma pair %a, %b into %d : !a, !wide into memref<128x512xf32, #frag.tensor>
  func.return
}
// -----
// N that only a block has.
!odd = memref<64x48xsi8, #frag.shared<swizzle = 32, pair = col>>
!bytes = memref<128x64xsi8, #frag.shared<swizzle = 64>>
func.func @f(%a: !bytes, %b: !odd, %d: memref<128x48xi32, #frag.tensor>) {
  frag.tcgen05_mma pair %a, %b into %d : !bytes, !odd into memref<128x48xi32, #frag.tensor>
  func.return
}
// -----
// Halves of an odd number of rows.
func.func @f(%x: memref<?x?xf16>) {
  %ring = frag.ring 2 : !frag.ring<memref<63x64xf16, #frag.shared<swizzle = 128, pair = row>>>
  func.return
}
// -----
// Threads read what a pair shares.
func.func @f(%b: !b) {
  %t = frag.load %b[0, 0] : !b -> !frag.tile<64x64xf16>
  func.return
}
// -----
// A half goes to one block.
func.func @f(%x: memref<64x64xf16>, %b: !b) {
  frag.copy tma %x[0, 0] to %b[] multicast : memref<64x64xf16> to !b
  func.return
}
// -----
// What a pair shares is not copied out.
func.func @f(%x: memref<64x64xf16>, %b: !b) {
  frag.copy tma %b[] to %x[0, 0] : !b to memref<64x64xf16>
  func.return
}
// -----
// Neither rows nor columns.
func.func @f(%b: memref<64x64xf16, #frag.shared<swizzle = 128, pair = k>>) {
  func.return
}
