// A product whose tiles come and go by the tensor memory accelerator, in roles of warps.
func.func @tma(%a: memref<256x256xf16>, %b: memref<256x256xf16>, %c: memref<256x256xf16>) {
  frag.matmul %a, %b into %c {roles}
    : memref<256x256xf16>, memref<256x256xf16> into memref<256x256xf16>
  func.return
}
