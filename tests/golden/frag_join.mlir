// RUN: -p frag-place
// Elements of two rows take turns.
func.func @f(%a: memref<64xf16>, %b: memref<64xf16>, %d: memref<128xf16>) {
  %0 = frag.load %a[0] : memref<64xf16> -> !frag.tile<64xf16>
  %1 = frag.load %b[0] : memref<64xf16> -> !frag.tile<64xf16>
  %2 = frag.join %0, %1 : !frag.tile<64xf16>, !frag.tile<64xf16> -> !frag.tile<64x2xf16>
  %3 = frag.reshape %2 : !frag.tile<64x2xf16> -> !frag.tile<128xf16>
  frag.store %3, %d[0] : !frag.tile<128xf16>, memref<128xf16>
  func.return
}
